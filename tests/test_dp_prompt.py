"""A rewriter with a language model: its law written out, its promise, and a real model."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare

from sottovoce.errors import SottovoceError
from sottovoce.language.causal_model import CausalModel
from sottovoce.mechanisms import names
from sottovoce.mechanisms.dp_prompt import PROMPT, DPPrompt
from sottovoce.obfuscation import Obfuscator
from sottovoce.text import TextPipeline

WORDS = ["", "river", "salmon", "tax"]
PIPELINE = TextPipeline()


class SmallModel:
    """Logits that depend on the letters of the prompt and on all tokens so far."""

    name, end = "small", 0

    def __init__(self, spread: float = 100.0) -> None:
        self.spread = spread

    def tokens(self, text: str) -> list[int]:
        return [1000 + ord(letter) for letter in text]

    def logits(self, tokens) -> np.ndarray:
        rng = np.random.default_rng(list(tokens))
        return rng.normal(size=len(WORDS)) * self.spread

    def text(self, tokens) -> str:
        return " ".join(WORDS[token] for token in tokens)


def law(model: SmallModel, text: str, epsilon: float, width: float, length: int) -> dict:
    """The chance of every output, by going through all of them."""
    prompt = model.tokens(PROMPT.format(text))
    chances: dict[tuple[int, ...], float] = {}
    for outcome in product(range(len(WORDS)), repeat=length):
        chance, seen = 1.0, []
        for token in outcome:
            logits = model.logits([*prompt, *seen])
            weights = [
                np.exp(max(value - max(logits), -width) * epsilon / 2 / width) for value in logits
            ]
            chance *= weights[token] / sum(weights)
            if token == model.end:
                break
            seen.append(token)
        chances[tuple(seen)] = chance if len(seen) == length or token == model.end else 0.0
    return chances


def test_draws_follow_the_law():
    model = SmallModel(spread=5.0)
    chosen = DPPrompt(model=model, epsilon=4.0, length=2, width=10.0)
    expected = law(model, "skin cancer", 4.0, 10.0, 2)
    assert sum(expected.values()) == pytest.approx(1)
    rng = np.random.default_rng(3)
    prompt = model.tokens(PROMPT.format("skin cancer"))
    drawn = [tuple(chosen._drawn(prompt, rng)) for _ in range(4000)]
    counts = [drawn.count(outcome) for outcome in expected]
    assert chisquare(counts, np.array([*expected.values()]) * len(drawn)).pvalue > 1e-4


@pytest.mark.parametrize("epsilon", [0.5, 5.0])
def test_no_output_tells_any_two_texts_apart_by_more_than_is_promised(epsilon):
    texts = ["skin cancer", "", "tax", "a much longer text about salmon"]
    length = 3
    laws = [law(SmallModel(), text, epsilon, 7.0, length) for text in texts]
    chosen = DPPrompt(model=SmallModel(), epsilon=epsilon, length=length, width=7.0)
    assert chosen.guarantee.notion == "local"
    assert chosen.guarantee.epsilon == pytest.approx(epsilon * length)
    worst = max(
        abs(np.log(one[outcome] / other[outcome]))
        for one, other in product(laws, laws)
        for outcome in one
    )
    assert 0.3 * epsilon < worst <= epsilon * length


def test_what_a_model_says_becomes_variants_and_blank_ones_are_left_out():
    chosen = DPPrompt(model=SmallModel(), epsilon=5.0, length=2)
    (result,) = Obfuscator(chosen, n=40, rng=1).obfuscate(["secret"])
    assert set(" ".join(result.variants).split()) <= set(WORDS)
    assert all(result.variants)
    again = Obfuscator(chosen, n=40, rng=1).obfuscate(["secret"])
    assert next(iter(again)).variants == result.variants


def test_logits_that_are_no_numbers_release_nothing():
    class Broken(SmallModel):
        def logits(self, tokens):
            return np.full(4, np.nan)

    with pytest.raises(SottovoceError):
        list(Obfuscator(DPPrompt(model=Broken()), rng=1).obfuscate(["secret"]))


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"length": 0}, {"width": float("inf")}])
def test_impossible_parameters_are_refused(wrong):
    with pytest.raises(SottovoceError):
        DPPrompt(model=SmallModel(), **wrong)


def test_it_is_for_python_alone():
    assert "dp-prompt" not in names()


def test_a_folder_that_holds_no_model_is_refused(tmp_path):
    with pytest.raises(SottovoceError, match=r"rewriting|could not be read"):
        CausalModel(tmp_path)
