// The loops over the rows of a block that peer.cpp is made of: vectors in, vectors or sums out.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

inline double exp_clamped(double z) {
    z = z < -40.0 ? -40.0 : (z > 40.0 ? 40.0 : z);
    const double k = std::floor(z * 1.4426950408889634 + 0.5);
    double r = z - k * 0.693147180369123816490;
    r = r - k * 1.90821492927058770002e-10;
    double p = 2.505210838544172e-08;
    p = p * r + 2.755731922398589e-07;
    p = p * r + 2.7557319223985893e-06;
    p = p * r + 2.48015873015873e-05;
    p = p * r + 0.0001984126984126984;
    p = p * r + 0.001388888888888889;
    p = p * r + 0.008333333333333333;
    p = p * r + 0.041666666666666664;
    p = p * r + 0.16666666666666666;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    const int64_t bits = (static_cast<int64_t>(static_cast<int32_t>(k)) + 1023) << 52;
    double power;
    std::memcpy(&power, &bits, sizeof power);
    return p * power;
}

void split_soft(int64_t n, const double *__restrict x, double threshold, double scale,
                const double *__restrict reach, double *__restrict psi, double *__restrict left,
                double *__restrict right) {
    for (int64_t r = 0; r < n; ++r) {
        const double go_right = 1.0 / (1.0 + exp_clamped(-(x[r] - threshold) * scale));
        const double to_right = reach[r] * go_right;
        psi[r] = go_right;
        left[r] = reach[r] - to_right;
        right[r] = to_right;
    }
}

double merge_adjoint(int64_t n, const double *__restrict psi, const double *__restrict reach,
                     const double *__restrict left, const double *__restrict right,
                     double *__restrict adjoint) {
    double total = 0.0;
    for (int64_t r = 0; r < n; ++r) {
        const double difference = right[r] - left[r];
        adjoint[r] = left[r] + psi[r] * difference;
        total += reach[r] * psi[r] * (1.0 - psi[r]) * difference;
    }
    return total;
}

double dot(int64_t n, const double *__restrict a, const double *__restrict b) {
    double total = 0.0;
    for (int64_t r = 0; r < n; ++r) total += a[r] * b[r];
    return total;
}

// Several at a time, as the core does.
void total_and_two_dots(int64_t n, const double *__restrict a, const double *__restrict b0,
                        const double *__restrict b1, double *out) {
    double total = 0.0, t0 = 0.0, t1 = 0.0;
    for (int64_t r = 0; r < n; ++r) {
        total += a[r];
        t0 += a[r] * b0[r];
        t1 += a[r] * b1[r];
    }
    out[0] = total;
    out[1] = t0;
    out[2] = t1;
}

void three_dots(int64_t n, const double *__restrict a, const double *__restrict b0,
                const double *__restrict b1, const double *__restrict b2, double *out) {
    double t0 = 0.0, t1 = 0.0, t2 = 0.0;
    for (int64_t r = 0; r < n; ++r) {
        t0 += a[r] * b0[r];
        t1 += a[r] * b1[r];
        t2 += a[r] * b2[r];
    }
    out[0] = t0;
    out[1] = t1;
    out[2] = t2;
}

void add_scaled(int64_t n, double *__restrict out, double factor, const double *__restrict a) {
    for (int64_t r = 0; r < n; ++r) out[r] += factor * a[r];
}

// Four at a time, as the core does: sums over pairs of leaves are bound by loads and stores.
// out = scale a + factor sum over leaves of weight phi.
void combine_leaves(int64_t n, double *__restrict out, double scale, const double *__restrict a,
                    double factor, const double *weights, int64_t stride, const int64_t *leaf,
                    int n_leaf, const double *__restrict reach) {
    for (int64_t r = 0; r < n; ++r) out[r] = scale * a[r];
    int j = 0;
    for (; j + 4 <= n_leaf; j += 4) {
        const double f0 = factor * weights[j * stride], f1 = factor * weights[(j + 1) * stride];
        const double f2 = factor * weights[(j + 2) * stride], f3 = factor * weights[(j + 3) * stride];
        const double *a0 = reach + leaf[j] * n, *a1 = reach + leaf[j + 1] * n;
        const double *a2 = reach + leaf[j + 2] * n, *a3 = reach + leaf[j + 3] * n;
        for (int64_t r = 0; r < n; ++r)
            out[r] += f0 * a0[r] + f1 * a1[r] + f2 * a2[r] + f3 * a3[r];
    }
    for (; j < n_leaf; ++j) add_scaled(n, out, factor * weights[j * stride], reach + leaf[j] * n);
}

// Two by three at a time, as the core does: sums of products are bound by loads.
void dot_two_by_three(int64_t n, const double *__restrict a0, const double *__restrict a1,
                      const double *__restrict b0, const double *__restrict b1,
                      const double *__restrict b2, double *out0, double *out1) {
    double t00 = 0.0, t01 = 0.0, t02 = 0.0, t10 = 0.0, t11 = 0.0, t12 = 0.0;
    for (int64_t r = 0; r < n; ++r) {
        const double x0 = a0[r], x1 = a1[r], z0 = b0[r], z1 = b1[r], z2 = b2[r];
        t00 += x0 * z0;
        t01 += x0 * z1;
        t02 += x0 * z2;
        t10 += x1 * z0;
        t11 += x1 * z1;
        t12 += x1 * z2;
    }
    out0[0] += t00;
    out0[1] += t01;
    out0[2] += t02;
    out1[0] += t10;
    out1[1] += t11;
    out1[2] += t12;
}

void multiply_shifted(int64_t n, double *__restrict out, const double *__restrict a,
                      const double *__restrict b, double shift) {
    for (int64_t r = 0; r < n; ++r) out[r] = a[r] * (b[r] - shift);
}

void scale_into(int64_t n, double *__restrict out, double factor, const double *__restrict a) {
    for (int64_t r = 0; r < n; ++r) out[r] = factor * a[r];
}

void scale_into_two(int64_t n, double *__restrict out0, double f0, double *__restrict out1,
                    double f1, const double *__restrict a) {
    for (int64_t r = 0; r < n; ++r) {
        out0[r] = f0 * a[r];
        out1[r] = f1 * a[r];
    }
}

double digamma(double x) {
    double result = 0.0;
    for (; x < 8.0; x += 1.0) result -= 1.0 / x;
    const double inverse = 1.0 / x, s = inverse * inverse;
    const double series =
        s * (1.0 / 12 -
             s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * 691.0 / 32760)))));
    return result + std::log(x) - 0.5 * inverse - series;
}

}  // namespace
