"""Terms of replica exchange, of where its rungs stand, and of the evidence."""

from __future__ import annotations

from .harness import Mutant

EXCHANGE = "samplers/tempering.py"
PLACES = "samplers/ladder.py"
EVIDENCE = "posterior/evidence.py"
LAWS = "tests/samplers/test_ladder.py -k every_rung_has_its_law"
LADDER = "tests/samplers/test_ladder.py"
TOYS = "tests/statistical/test_tempering.py"
ESTIMATES = "tests/statistical/test_evidence.py"

MUTANTS = [
    Mutant(
        "exchange: the powers left out of the ratio",
        EXCHANGE,
        "TemperedChain.exchange",
        "a.power[0] - b.power[0]",
        "1.0",
        LAWS,
    ),
    Mutant(
        "exchange: the ratio upside down",
        EXCHANGE,
        "TemperedChain.exchange",
        "log_likes[k + 1] - log_likes[k]",
        "log_likes[k] - log_likes[k + 1]",
        LAWS,
    ),
    Mutant(
        "exchange: one state is copied, the other lost",
        EXCHANGE,
        "exchange_states",
        "one[...], other[...] = other.copy(), one.copy()",
        "one[...] = other",
        LAWS,
    ),
    Mutant(
        "ladder: rungs go on moving after warm-up",
        EXCHANGE,
        "TemperedChain.exchange",
        "self.exchanges[0 if warming else 1] += (accepted, 1)",
        """
        self.exchanges[0 if warming else 1] += (accepted, 1)
        b.power[0] *= 0.999 if accepted else 1.001
        """,
        f"{LADDER} -k rungs_stay_after_warm_up",
    ),
    Mutant(
        "ladder: chains place their rungs each for itself",
        EXCHANGE,
        "settle",
        "chain.set_powers(powers)",
        "chain.set_powers(powers if chain is first else chain.powers)",
        f"{LADDER} -k place_their_rungs_together",
    ),
    Mutant(
        "ladder: barrier at a rung, the whole mean difference",
        PLACES,
        "gaps_of_rungs",
        "m * (m - 1)",
        "0.5 * m * (m - 1)",
        f"{LADDER} -k ran_apart",
    ),
    Mutant(
        "ladder: refused shares taken as distances",
        PLACES,
        "gaps_of_rungs",
        "0.5 * (slope[:-1] + slope[1:]) * -np.diff(places(powers))",
        "refused_share(0.5 * (slope[:-1] + slope[1:]) * -np.diff(places(powers)))",
        f"{LADDER} -k ran_apart",
    ),
    Mutant(
        "ladder: few rungs go as far as many",
        PLACES,
        "place_rungs",
        "max(min(math.log(mixes_at), with_ease), at_most, math.log(LOWEST))",
        "math.log(mixes_at)",
        f"{LADDER} -k few_rungs",
    ),
    Mutant(
        "ladder: a rung that agrees by luck is believed",
        PLACES,
        "agreeing_power",
        "disagree[-1]",
        "disagree[0]",
        f"{LADDER} -k highest_power_that_mixes",
    ),
    Mutant(
        "evidence: draws of the hot side alone",
        EVIDENCE,
        "bennett",
        "np.mean(expit(hot - c)) - np.mean(expit(c - cold))",
        "np.mean(expit(hot - c)) - np.mean(expit(c - hot))",
        f"{ESTIMATES} -k test_bennett",
    ),
    Mutant(
        "evidence: the whole power instead of its step",
        EVIDENCE,
        "influences",
        "powers[k] - powers[k + 1]",
        "powers[k]",
        f"{ESTIMATES} -k error_covers",
    ),
    Mutant(
        "evidence: influence of a draw without its slope",
        EVIDENCE,
        "influences",
        "excess / max(slope, 1e-300)",
        "excess",
        f"{ESTIMATES} -k error_covers",
    ),
    Mutant(
        "evidence: error that does not see how chains differ",
        EVIDENCE,
        "evidence_of_ladder",
        "error_of_mean(series)",
        "error_of_mean(series - series.mean(axis=1, keepdims=True))",
        f"{ESTIMATES} -k chains_that_differ",
    ),
    Mutant(
        "CGM, WU: the power left out of the acceptance ratio",
        "core/hard/moves.py",
        "accept_or_refuse",
        "tempered(power, log_like) - tempered(power, state.log_like[0])",
        "log_like - state.log_like[0]",
        f"{ESTIMATES} -k hard_trees wu-classes",
    ),
    Mutant(
        "hard leaves: constant of the normal density, one variance for all",
        "core/hard/leaves.py",
        "combine",
        "total - 0.5 * n_rows * LOG_2PI",
        "total",
        f"{ESTIMATES} -k single_leaf True",
    ),
    Mutant(
        "exchange at power 0 hands on a likelihood that was not computed",
        "samplers/rjhmc.py",
        "RJHMCChain.log_likelihood",
        "model.power[0] == 0.0",
        "False",
        f"{ESTIMATES} -k soft_trees hard-classes",
    ),
]
