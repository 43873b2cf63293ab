"""Group claims of boxed mechanisms: every two words of every group; groups must be disjoint."""

from __future__ import annotations

import numpy as np

from sottovoce.mechanisms.boxes import BoxMechanism
from sottovoce.privacy.audit.all_pairs import Step
from sottovoce.privacy.audit.claims import TOLERANCE, Claim
from sottovoce.privacy.audit.verdicts import Finding, Points, Witness
from sottovoce.types import Float64Array, IntArray

WORDS_AT_A_TIME = 4096
DRAWN = 20
"""Groups whose pairs a figure shows."""
NAME = "exact, within groups"


def within_groups(mechanism: BoxMechanism, claim: Claim, step: Step) -> Finding:
    """The largest log-ratio inside any group; across groups nothing is claimed."""
    size = mechanism.space.size
    sorted_laws: list[tuple[IntArray, Float64Array]] = []
    for start in range(0, size, WORDS_AT_A_TIME):
        words = np.arange(start, min(start + WORDS_AT_A_TIME, size))
        for ids, law in mechanism.laws(words):
            order = np.argsort(ids)
            sorted_laws.append((ids[order], law[order]))
        step(len(sorted_laws) / size)
    members: dict[bytes, list[int]] = {}
    for word, (ids, _) in enumerate(sorted_laws):
        members.setdefault(ids.tobytes(), []).append(word)
    groups = [np.array(each) for each in members.values()]
    pairs = sum(len(group) * (len(group) - 1) for group in groups)
    torn = _overlap(mechanism, claim, sorted_laws, groups)
    if torn is not None:
        return torn
    largest, worst = 0.0, None
    for group in groups:
        laws = np.array([sorted_laws[word][1] for word in group])
        spread = laws.max(axis=0) - laws.min(axis=0)
        if (value := float(spread.max())) > largest:
            place = int(np.argmax(spread))
            largest = value
            worst = (
                int(group[np.argmax(laws[:, place])]),
                int(group[np.argmin(laws[:, place])]),
                int(sorted_laws[group[0]][0][place]),
                (float(np.exp(laws[:, place].max())), float(np.exp(laws[:, place].min()))),
            )
    figures: dict[str, float | int | None] = {
        "groups": len(groups),
        "pairs": pairs,
        "tight_epsilon": largest,
        "worst_excess": largest - claim.epsilon,
    }
    points = _points(mechanism, claim, sorted_laws, groups[:DRAWN])
    said = f"{pairs:,} ordered pairs inside {len(groups):,} groups, exactly:"
    if largest > claim.epsilon + TOLERANCE and worst is not None:
        first, second, output = mechanism.space.words(np.array(worst[:3]))
        witness = Witness(first, second, f"'{output}'", worst[3], largest, claim.epsilon)
        sentence = f"{said} the largest log-ratio exceeds the claim."
        return Finding(NAME, claim.label, "REFUTED", sentence, witness, figures, points)
    sentence = (
        f"{said} none exceeds its bound; the epsilon really reached is {largest:.4g} of "
        f"{claim.epsilon:g} claimed. Across groups nothing is claimed, and nothing holds: the "
        "group is released."
    )
    return Finding(NAME, claim.label, "CONSISTENT", sentence, None, figures, points)


def _points(
    mechanism: BoxMechanism,
    claim: Claim,
    laws: list[tuple[IntArray, Float64Array]],
    groups: list[IntArray],
) -> Points:
    """Every two words of some groups: how far apart, the largest log-ratio, the bound."""
    far, losses = [np.empty(0)], [np.empty(0)]
    for group in groups:
        rows = np.array([laws[word][1] for word in group])
        one, two = np.nonzero(~np.eye(len(group), dtype=bool))
        far.append(mechanism.distances(group[one], group[two]))
        losses.append((rows[one] - rows[two]).max(axis=1))
    distances = np.concatenate(far)
    return Points(distances, np.concatenate(losses), np.full(len(distances), claim.epsilon))


def _overlap(
    mechanism: BoxMechanism,
    claim: Claim,
    laws: list[tuple[IntArray, Float64Array]],
    groups: list[IntArray],
) -> Finding | None:
    """Two sets that share an output without being equal are no groups: no bound can hold."""
    owner: IntArray = np.full(mechanism.space.size, -1, dtype=np.int64)
    for group in groups:
        ids, law = laws[group[0]]
        taken = ids[owner[ids] >= 0]
        if len(taken):
            other = int(owner[taken[0]])
            own = np.setdiff1d(ids, laws[other][0])
            one, two = (int(group[0]), other) if len(own) else (other, int(group[0]))
            if not len(own):
                ids, law = laws[other]
                own = np.setdiff1d(ids, laws[two][0])
            chance = float(np.exp(law[np.searchsorted(ids, own[0])]))
            first, second, output = mechanism.space.words(np.array([one, two, own[0]]))
            witness = Witness(first, second, f"'{output}'", (chance, 0.0), np.inf, claim.epsilon)
            sentence = "the sets of outputs overlap without being equal: they are no groups."
            return Finding(NAME, claim.label, "REFUTED", sentence, witness)
        owner[ids] = group[0]
    return None
