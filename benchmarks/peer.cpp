// The arithmetic of hamiltree's compiled core in C++, as a yardstick for its speed.
//
// Value and gradient of the HMC-DF log-likelihood of a small tree, which takes one pass over the rows:
// core/tree/routing.py and core/soft/likelihoods.py with the same node layout, blocks, sums over pairs,
// tangents and polynomial sigmoid. Compiled by gradient.py with g++ -O3 -march=native -ffast-math;
// called through ctypes.

#include <cmath>
#include <cstdint>

#include "peer_vectors.h"

namespace {

constexpr double kLog2Pi = 1.8378770664093454836;
constexpr int kMaxLeaves = 64, kMaxPairs = 256;

enum Family { kClasses = 0, kMeans = 1, kCollapsed = 2 };

// One argument for the caller to fill; field order is mirrored in gradient.py.
struct Problem {
    int64_t family, n_rows, padded, n_nodes, n_blocks, n_classes;
    const double *columns, *y;                  // [p, padded], [padded]
    const int64_t *block, *block_rows, *block_class;  // [n_blocks + 1], [n_blocks], [n_blocks]
    const int64_t *size, *feature;              // [n_nodes]
    double *threshold, *value;                  // [n_nodes]
    const double *alpha;                        // [n_classes]
    double sigma, mu_mean, mu_sd, h;
    double *psi, *reach, *adjoint, *slope;      // see gradient.py
    double *d_threshold, *d_value, *d_sigma;    // [n_nodes], [n_nodes], [1]
};

struct Sums {
    int n_leaf = 0;
    int64_t leaf[kMaxLeaves], parent[2 * kMaxLeaves];
    double pairs[kMaxPairs][kMaxLeaves] = {};  // zeroed again after use
    double sums[kMaxPairs][kMaxLeaves + 3];  // see core/soft/collapsed.py
    double counts[kMaxLeaves][kMaxLeaves], table[kMaxLeaves][kMaxLeaves];
    double gram[kMaxLeaves][kMaxLeaves], moment[kMaxLeaves][kMaxLeaves];
};

void route_block(const Problem &p, int64_t b, int64_t start, int64_t n, double *psi,
                 double *reach) {
    const int64_t real = p.block_rows[b];
    for (int64_t r = 0; r < n; ++r) reach[r] = 1.0;
    for (int64_t r = real; r < n; ++r) reach[r] = 0.0;
    for (int64_t i = 0; i < p.n_nodes; ++i) {
        if (p.size[i] == 1) continue;
        const int64_t left = i + 1, right = left + p.size[left];
        split_soft(n, p.columns + p.feature[i] * p.padded + start, p.threshold[i], 1.0 / p.h,
                   reach + i * n, psi + i * n, reach + left * n, reach + right * n);
    }
}

// ----------------------------------------------------------------- sums over the rows of a block
double accumulate(const Problem &p, Sums &s, int64_t b, int64_t start, int64_t n,
                  const double *psi, const double *reach) {
    if (p.family == kClasses) {
        int pair = 0;
        for (int k = 0; k < s.n_leaf; ++k) {
            const double *phi = reach + s.leaf[k] * n;
            const int64_t label = p.block_class[b];
            for (int64_t i = s.parent[s.leaf[k]]; i >= 0;) {
                const int64_t above = s.parent[i];
                double sums[3];
                total_and_two_dots(n, phi, psi + i * n, psi + (above < 0 ? 0 : above) * n, sums);
                if (i == s.parent[s.leaf[k]]) s.counts[k][label] += sums[0];
                s.pairs[pair++][label] += sums[1];
                i = above;
                if (i >= 0) {
                    s.pairs[pair++][label] += sums[2];
                    i = s.parent[i];
                }
            }
        }
        return 0.0;
    }
    if (p.family == kMeans) {
        double *residual = p.slope;
        for (int k = 0; k < s.n_leaf; ++k) s.table[k][0] = p.value[s.leaf[k]];
        combine_leaves(n, residual, 1.0, p.y + start, -1.0, &s.table[0][0], kMaxLeaves, s.leaf,
                       s.n_leaf, reach);
        const auto phi_or_residual = [&](int k) {
            return k < s.n_leaf ? reach + s.leaf[k] * n : residual;
        };
        double squares = 0.0;
        for (int k = 0; k <= s.n_leaf; k += 3) {
            double dots[3];
            three_dots(n, residual, phi_or_residual(k), phi_or_residual(k + 1),
                       phi_or_residual(k + 2), dots);
            for (int j = 0; j < 3 && k + j <= s.n_leaf; ++j) {
                if (k + j < s.n_leaf)
                    p.d_value[s.leaf[k + j]] += dots[j];
                else
                    squares = dots[j];
            }
        }
        return squares;
    }
    // Regression, means integrated out: the leaves' phi and the tangents, by y and the leaves' phi.
    double *tangent = p.adjoint;
    int first = 0;  // of the leaves below i
    for (int64_t i = 0; i < p.n_nodes; ++i) {
        if (p.size[i] == 1) {
            ++first;
            continue;
        }
        const int first_right = first + (p.size[i + 1] + 1) / 2;
        for (int k = first; k < first + (p.size[i] + 1) / 2 - 1; ++k, tangent += n)
            multiply_shifted(n, tangent, reach + s.leaf[k] * n, psi + i * n,
                             k < first_right ? 0.0 : 1.0);
    }
    const int last = s.n_leaf + static_cast<int>((tangent - p.adjoint) / n) - 1;
    const auto left = [&](int a) {
        return a < s.n_leaf ? reach + s.leaf[a] * n : p.adjoint + (a - s.n_leaf) * n;
    };
    const auto right = [&](int c) {
        return c == 0 ? p.y + start : reach + s.leaf[(c < s.n_leaf ? c : s.n_leaf) - 1] * n;
    };
    for (int a = 0; a <= last; a += 2) {
        const double *a0 = left(a), *a1 = left(a < last ? a + 1 : last);
        for (int c = 0; c < (a + 3 < s.n_leaf + 1 ? a + 3 : s.n_leaf + 1); c += 3)
            dot_two_by_three(n, a0, a1, right(c), right(c + 1), right(c + 2), &s.sums[a][c],
                             &s.sums[a + 1][c]);
    }
    return dot(n, p.y + start, p.y + start);
}

// --------------------------------------------------------------------- log-likelihood from sums
double finish_classes(const Problem &p, Sums &s) {
    double mass = 0.0, constant = 0.0;
    for (int m = 0; m < p.n_classes; ++m) {
        mass += p.alpha[m];
        constant -= std::lgamma(p.alpha[m]);
    }
    double total = s.n_leaf * (constant + std::lgamma(mass));
    for (int k = 0; k < s.n_leaf; ++k) {
        double rows = 0.0;
        for (int m = 0; m < p.n_classes; ++m) {
            rows += s.counts[k][m];
            total += std::lgamma(s.counts[k][m] + p.alpha[m]);
        }
        total -= std::lgamma(rows + mass);
        const double shared = digamma(rows + mass);
        for (int m = 0; m < p.n_classes; ++m)
            s.table[k][m] = digamma(s.counts[k][m] + p.alpha[m]) - shared;
    }
    return total;
}

double finish_means(const Problem &p, const Sums &s, double squares) {
    const double n = static_cast<double>(p.n_rows), precision = 1.0 / (p.sigma * p.sigma);
    for (int k = 0; k < s.n_leaf; ++k) p.d_value[s.leaf[k]] *= precision;
    *p.d_sigma = (squares * precision - n) / p.sigma;
    return -0.5 * (n * (kLog2Pi + 2.0 * std::log(p.sigma)) + squares * precision);
}

void solve_lower(const Sums &s, double *b) {
    for (int i = 0; i < s.n_leaf; ++i) {
        for (int k = 0; k < i; ++k) b[i] -= s.gram[i][k] * b[k];
        b[i] *= s.gram[i][i];
    }
}

void solve_upper(const Sums &s, double *b) {
    for (int i = s.n_leaf - 1; i >= 0; --i) {
        for (int k = i + 1; k < s.n_leaf; ++k) b[i] -= s.gram[k][i] * b[k];
        b[i] *= s.gram[i][i];
    }
}

void invert(Sums &s) {
    for (int j = 0; j < s.n_leaf; ++j) {
        s.moment[j][j] = s.gram[j][j];
        for (int i = j + 1; i < s.n_leaf; ++i) {
            double entry = 0.0;
            for (int k = j; k < i; ++k) entry -= s.gram[i][k] * s.moment[j][k];
            s.moment[j][i] = entry * s.gram[i][i];
        }
    }
    for (int j = 0; j < s.n_leaf; ++j) {
        for (int i = 0; i <= j; ++i) {
            double entry = 0.0;
            for (int k = j; k < s.n_leaf; ++k) entry += s.moment[i][k] * s.moment[j][k];
            s.moment[j][i] = entry;
        }
        for (int i = 0; i < j; ++i) s.moment[i][j] = s.moment[j][i];
    }
}

double finish_collapsed(const Problem &p, Sums &s, double yy) {
    const double n = static_cast<double>(p.n_rows), precision = 1.0 / (p.sigma * p.sigma);
    const double prior_precision = 1.0 / (p.mu_sd * p.mu_sd);
    double mean[kMaxLeaves];
    for (int a = 0; a < s.n_leaf; ++a) {
        mean[a] = s.sums[a][0] * precision + p.mu_mean * prior_precision;
        for (int b = 0; b <= a; ++b) s.gram[a][b] = s.sums[a][b + 1] * precision;
        s.gram[a][a] += prior_precision;
    }
    for (int j = 0; j < s.n_leaf; ++j) {  // Cholesky
        for (int k = 0; k < j; ++k) s.gram[j][j] -= s.gram[j][k] * s.gram[j][k];
        s.gram[j][j] = 1.0 / std::sqrt(s.gram[j][j]);  // solving then needs no division
        for (int i = j + 1; i < s.n_leaf; ++i) {
            for (int k = 0; k < j; ++k) s.gram[i][j] -= s.gram[i][k] * s.gram[j][k];
            s.gram[i][j] *= s.gram[j][j];
        }
    }
    double log_det = 0.0, explained = 0.0, trace = 0.0, shrinkage = 0.0;
    solve_lower(s, mean);
    for (int a = 0; a < s.n_leaf; ++a) {
        log_det -= std::log(s.gram[a][a]);
        explained += mean[a] * mean[a];
    }
    solve_upper(s, mean);
    const double squares =
        yy * precision - explained + s.n_leaf * p.mu_mean * p.mu_mean * prior_precision;
    invert(s);
    for (int a = 0; a < s.n_leaf; ++a) {
        trace += 1.0 - prior_precision * s.moment[a][a];
        shrinkage += (mean[a] - p.mu_mean) * (mean[a] - p.mu_mean) * prior_precision;
        s.table[a][0] = mean[a];
        for (int b = 0; b < s.n_leaf; ++b) s.moment[a][b] += mean[a] * mean[b];
    }
    *p.d_sigma = (squares - shrinkage - (n - trace)) / p.sigma;
    return -0.5 * (n * (kLog2Pi + 2.0 * std::log(p.sigma)) + 2.0 * log_det -
                   s.n_leaf * std::log(prior_precision) + squares);
}

// ------------------------------------------------------------------------------------- the way back
void gradient_from_pairs(const Problem &p, Sums &s) {
    int pair = 0;
    for (int k = 0; k < s.n_leaf; ++k) {
        int64_t child = s.leaf[k];
        for (int64_t i = s.parent[child]; i >= 0; child = i, i = s.parent[i], ++pair)
            for (int m = 0; m < p.n_classes; ++m) {
                const double mass = s.pairs[pair][m] - (child != i + 1 ? s.counts[k][m] : 0.0);
                p.d_threshold[i] += s.table[k][m] * mass / p.h;
                s.pairs[pair][m] = 0.0;
            }
    }
}

void gradient_from_tangents(const Problem &p, const Sums &s) {
    const double precision = 1.0 / (p.sigma * p.sigma);
    int row = s.n_leaf, first = 0;
    for (int64_t i = 0; i < p.n_nodes; ++i) {
        if (p.size[i] == 1) {
            ++first;
            continue;
        }
        const int last = first + (p.size[i] + 1) / 2 - 1;
        double total = 0.0;
        for (int k = first; k < last; ++k, ++row) {
            total += (s.table[k][0] - s.table[last][0]) * s.sums[row][0];
            for (int j = 0; j < s.n_leaf; ++j)
                total -= (s.moment[k][j] - s.moment[last][j]) * s.sums[row][j + 1];
        }
        p.d_threshold[i] = total * precision / p.h;
    }
}

void back_through_block(const Problem &p, const Sums &s, int64_t n, const double *psi,
                        const double *reach) {
    const double precision = 1.0 / (p.sigma * p.sigma);
    for (int k = 0; k + 1 < s.n_leaf; k += 2)
        scale_into_two(n, p.adjoint + s.leaf[k] * n, p.value[s.leaf[k]] * precision,
                       p.adjoint + s.leaf[k + 1] * n, p.value[s.leaf[k + 1]] * precision, p.slope);
    if (s.n_leaf % 2 == 1) {
        const int64_t last = s.leaf[s.n_leaf - 1];
        scale_into(n, p.adjoint + last * n, p.value[last] * precision, p.slope);
    }
    for (int64_t i = p.n_nodes - 1; i >= 0; --i) {
        if (p.size[i] == 1) continue;
        const int64_t left = i + 1, right = left + p.size[left];
        const double total = merge_adjoint(n, psi + i * n, reach + i * n, p.adjoint + left * n,
                                           p.adjoint + right * n, p.adjoint + i * n);
        p.d_threshold[i] -= total / p.h;
    }
}

double log_likelihood(const Problem &p, Sums &s) {
    s.n_leaf = 0;
    for (int64_t i = 0; i < p.n_nodes; ++i) {
        if (p.size[i] == 1) {
            s.leaf[s.n_leaf++] = i;
        } else {
            s.parent[i + 1] = i;
            s.parent[i + 1 + p.size[i + 1]] = i;
        }
        p.d_threshold[i] = p.d_value[i] = 0.0;
    }
    s.parent[0] = -1;
    const int64_t n_sums = p.family == kClasses ? p.n_classes : 1;
    for (int k = 0; k < s.n_leaf; ++k) {
        for (int64_t m = 0; m < n_sums; ++m) s.counts[k][m] = 0.0;
    }
    if (p.family == kCollapsed) {
        int n_left = 1;  // leaves, tangents, and one more to fill the last two
        for (int64_t i = 0; i < p.n_nodes; ++i) n_left += p.size[i] == 1 ? 1 : (p.size[i] - 1) / 2;
        for (int a = 0; a < n_left; ++a)
            for (int c = 0; c < s.n_leaf + 3; ++c) s.sums[a][c] = 0.0;
    }
    double squares = 0.0;
    for (int64_t b = 0; b < p.n_blocks; ++b) {
        const int64_t start = p.block[b], n = p.block[b + 1] - start;
        route_block(p, b, start, n, p.psi, p.reach);
        squares += accumulate(p, s, b, start, n, p.psi, p.reach);
        if (p.family == kMeans) back_through_block(p, s, n, p.psi, p.reach);
    }
    if (p.family == kMeans) return finish_means(p, s, squares);
    double total;
    if (p.family == kClasses) {
        total = finish_classes(p, s);
        gradient_from_pairs(p, s);
    } else {
        total = finish_collapsed(p, s, squares);
        gradient_from_tangents(p, s);
    }
    return total;
}

}  // namespace

// Evaluate `times` times; a sampler, too, calls from compiled code. The root's threshold moves a
// little each time, or the compiler could do the work once.
extern "C" double peer_evaluate(const Problem *problem, int64_t times) {
    static Sums sums;
    double total = 0.0;
    for (int64_t t = 0; t < times; ++t) {
        total = log_likelihood(*problem, sums);
        if (t + 1 < times) problem->threshold[0] += t % 2 == 0 ? 1e-9 : -1e-9;
    }
    return total;
}
