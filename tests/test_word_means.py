"""Query inference by words: against a plain computation, and against the light encoder."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import PCG64, Generator

from sottovoce import mechanism
from sottovoce.collections import demo_log
from sottovoce.encoders import load_encoder
from sottovoce.privacy import QueryLog, Released, attack
from sottovoce.privacy.attacks.word_means import COMPARED, SAME, infer_by_words
from sottovoce.spaces.space import WordSpace

BY_HYPERNYMS = {
    "caring for a parent with dementia": (
        "caring for a ancestor with insanity",
        "caring for a antecedent with insanity",
        "caring for a ascendant with insanity",
        "caring for a ascendent with insanity",
    ),
    "finding my birth parents after adoption": (
        "finding my beginning root after appropriation",
        "finding my commencement antecedent after appropriation",
        "finding my commencement root after appropriation",
        "finding my first antecedent after appropriation",
    ),
    "hidden camera in rented flat": (
        "hidden instrumentality in rented 2-dimensional",
        "hidden instrumentality in rented bland",
        "hidden instrumentality in rented categoric",
        "hidden instrumentality in rented categorical",
    ),
    "erectile dysfunction causes young men": (
        "cavernous disfunction case unseasoned genus Homo",
        "cavernous disfunction effort new genus Homo",
        "cavernous disfunction entity untried adult male",
        "cavernous disfunction entity untried work force",
    ),
    "how to appeal a deportation order": (
        "how to appeal a exile biological group",
        "how to appeal a exile establishment",
        "how to appeal a exile grouping",
        "how to appeal a exile institution",
    ),
    "wearing a headscarf at work rules": (
        "wearing a garment at acquisition instruction",
        "wearing a garment at acquisition practice",
        "wearing a garment at business direction",
        "wearing a garment at business practice",
    ),
    "someone opened accounts in my name": (
        "living thing opened importance in my calumny",
        "living thing opened informing in my calumniation",
        "living thing opened making known in my traducement",
        "causal agency opened relationship in my defamation",
    ),
    "landlord is suing me for unpaid rent": (
        "landholder is suing me for amateur location",
        "landholder is suing me for recreational location",
        "landholder is suing me for volunteer location",
        "landowner is suing me for amateur location",
    ),
    "leaving my religion without losing family": (
        "leaving my faith without losing being",
        "leaving my faith without losing biological group",
        "leaving my faith without losing organism",
        "leaving my faith without losing social group",
    ),
    "melanoma skin cancer treatment options": (
        "carcinoma individual natural object intervention deciding",
        "carcinoma aggressor mortal discourse higher cognitive process",
        "carcinoma artifact tumour social control derivative",
        "carcinoma baldhead malignant neoplastic disease direction legal document",
    ),
    "blackmailed with private pictures online": (
        "blackmailed with individual basic cognitive process",
        "blackmailed with individual state",
        "blackmailed with intimate basic cognitive process",
        "blackmailed with intimate state",
    ),
    "my rights when joining a protest": (
        "my external body part when joining a dissent",
        "my external body part when joining a objection",
        "my idea when joining a dissent",
        "my idea when joining a objection",
    ),
}
"""Twelve demo queries as ``aea`` released them."""


def test_words_name_more_than_the_light_encoder_does() -> None:
    """What a risk by encoders alone would leave out."""
    releases = [Released(text, text, variants) for text, variants in BY_HYPERNYMS.items()]
    report = attack(
        releases, log=QueryLog(demo_log()), encoders=[load_encoder("light")], add_originals=True
    )
    named = {inference.attack: inference.lazy.value for _, inference in report.inferences}
    assert named["light"] <= 0.6
    assert report.queries is not None
    assert report.queries.share >= named["light"] + 0.2
    assert report.queries.attack in (*COMPARED, SAME)
    assert "does not use the mechanism" in report.queries.knows


WORDS = [f"w{number:02}" for number in range(30)]


@pytest.fixture(scope="module")
def space() -> WordSpace:
    vectors = Generator(PCG64(4)).standard_normal((len(WORDS), 5)) + 0.7
    return WordSpace.from_arrays(WORDS, vectors)


def plain_vectors(space: WordSpace, log: list[str], words: list[str]) -> dict[str, np.ndarray]:
    """The vectors of words, written out: those of the space, centred ones, one-hot ones."""
    listed = np.array([word in space for word in words])
    vectors = np.zeros((len(words), space.dimension))
    vectors[listed] = space.vectors[space.ids([word for word in words if word in space])]
    spoken = [words.index(word) for text in log for word in text.split() if word in space]
    center = vectors[spoken].mean(axis=0)
    away = np.sqrt(((vectors[spoken] - center) ** 2).sum(axis=1)).mean()
    one_hot = np.eye(len(words))
    centred = np.hstack([(vectors - center) * listed[:, None], away * one_hot * ~listed[:, None]])
    return {"means": vectors, "centred means": centred, "same words": one_hot}


def unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.sqrt((rows * rows).sum(axis=-1, keepdims=True))
    return rows / np.where(lengths > 0, lengths, 1)


@pytest.mark.parametrize("in_log", [True, False])
def test_ranks_are_those_of_vectors_that_are_written_out(space: WordSpace, in_log: bool) -> None:
    rng = Generator(PCG64(5))
    words = [*WORDS, "unlisted", "unheard", "unseen"]
    texts = [" ".join(rng.choice(words, rng.integers(1, 5))) for _ in range(60)]
    texts = list(dict.fromkeys(texts))
    releases = [
        Released(text, text, tuple(" ".join(rng.choice(words, 3)) for _ in range(4)))
        for text in texts[:12]
    ]
    log = texts if in_log else texts[3:]
    queries = texts if in_log else [*texts[3:], *texts[:3]]
    vectors = plain_vectors(space, log, words)

    def directions(listed: list[str], kind: str) -> np.ndarray:
        sums = [vectors[kind][[words.index(word) for word in text.split()]] for text in listed]
        return unit(np.stack([words_of_text.sum(axis=0) for words_of_text in sums]))

    made = infer_by_words(releases, QueryLog(log), space, variants=3, add_originals=True)
    assert [inference.attack for inference in made] == list(COMPARED)
    for inference in made:
        assert (inference.log, inference.added) == (len(queries), 0 if in_log else 3)
        for query, release in zip(inference.queries, releases, strict=True):
            scores = np.zeros(len(queries))
            for kind in COMPARED[inference.attack]:
                center = unit(directions(list(release.variants[:3]), kind).mean(axis=0))
                scores += directions(queries, kind) @ center
            lead = scores - scores[queries.index(release.text)]
            ties = int((abs(lead) <= 1e-6).sum()) - 1
            assert (query.rank, query.ties) == (1 + (lead > 1e-6).sum() + ties / 2, ties)


def test_an_attack_compares_what_its_name_says() -> None:
    assert {name: tuple(name.split(" + ")) for name in COMPARED} == COMPARED


def test_the_same_words_in_another_order_tie(space: WordSpace) -> None:
    log = QueryLog(["w01 w02 w03", "w03 w01 w02", "w09", "w04 w05"])
    release = [Released("1", "w01 w02 w03", ("w01 w02 w03",))]
    for inference in infer_by_words(release, log, space):
        assert [(query.rank, query.ties) for query in inference.queries] == [(1.5, 1)]


def test_blank_variants_say_nothing(space: WordSpace) -> None:
    log = QueryLog(["w01 w02", "w03", "w04 w05"])
    for inference in infer_by_words([Released("1", "w03", ("", " "))], log, space):
        assert [(query.rank, query.ties) for query in inference.queries] == [(2, 2)]


def test_words_are_looked_up_in_the_space_of_the_mechanism(space: WordSpace) -> None:
    santext = mechanism("santext:epsilon=3", space=space)
    releases = [Released("1", "w01 w02", ("w01 w03",))]
    report = attack(releases, mechanism=santext, log=QueryLog(["w01 w02", "w07"]))
    knowledge = {inference.attack: inference.knows for _, inference in report.inferences}
    where = f"in the mechanism's space {space.name}"
    assert all(where in knowledge[name] for name in COMPARED)
    assert report.not_tried == {}


def test_without_a_space_the_same_words_are_left_and_the_report_says_so(home: object) -> None:
    releases = [Released("1", "night bus", ("night bus",))]
    report = attack(releases, log=QueryLog(["night bus", "skin cancer"]), attacks=["means"])
    assert [inference.attack for _, inference in report.inferences] == [SAME]
    assert "sottovoce spaces add default" in report.not_tried["means"]
