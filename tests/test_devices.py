"""Which device searches: chosen once, told to worker processes, and said in what is printed."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from sottovoce import devices, mechanism
from sottovoce.cli import app
from sottovoce.devices import device, device_choice, gpu_present, set_device
from sottovoce.errors import UsageError
from sottovoce.mechanisms import noise
from sottovoce.mechanisms.cmp import CMP
from sottovoce.mechanisms.mahalanobis import Mahalanobis
from sottovoce.mechanisms.noise import same_on_gpu
from sottovoce.mechanisms.vickrey import VickreyCMP, VickreyMahalanobis
from sottovoce.privacy import calibrate, deniability, word_draws
from sottovoce.privacy.auditing import fewer_outputs
from sottovoce.privacy.targets import Targets
from sottovoce.privacy.word_draws import CommonNoise, sampler_for
from sottovoce.randomness import Draws, as_generator, keyed_generator, secure_generator
from sottovoce.workers import ordered_map

no_gpu = pytest.mark.skipif(gpu_present(), reason="there is a CUDA device")


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    monkeypatch.setattr(devices, "_choice", "auto")


@no_gpu
def test_without_a_gpu_the_processor_searches(toy):
    assert device() == "cpu"
    assert CMP(toy).device == "cpu"
    assert toy.nearest_output.fused is None


@no_gpu
def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match=r"'cuda'.*use device 'cpu'"):
        set_device("cuda")
    assert device_choice() == "auto"


def test_without_torch_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: None)
    assert not gpu_present()
    with pytest.raises(UsageError, match="pip install 'sottovoce\\[gpu\\]'"):
        set_device("cuda")


def test_an_unknown_device_is_refused():
    with pytest.raises(UsageError, match="auto, cpu, cuda"):
        set_device("tpu")


def test_the_choice_holds_in_this_process():
    set_device("cpu")
    assert device_choice() == device() == "cpu"


def _device_there(state, task):
    return device_choice()


def test_worker_processes_use_the_same_device():
    set_device("cpu")
    assert [result for _, result in ordered_map(_device_there, None, [1], 1)] == ["cpu"]


@no_gpu
def test_torch_is_not_imported_to_find_that_there_is_no_gpu():
    code = (
        "import sys; from sottovoce.devices import device; import sottovoce.mechanisms; "
        "print(device(), [name for name in ('torch', 'triton') if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split(maxsplit=1) == ["cpu", "[]\n"]


def test_only_draws_that_nobody_can_repeat_may_come_from_elsewhere():
    assert Draws([(secure_generator(), 2), (as_generator(None), 1)]).secure
    assert not Draws([(secure_generator(), 2), (as_generator(3), 1)]).secure
    assert not Draws([(keyed_generator(bytes(16)), 1)]).secure


# With a seed


@pytest.fixture
def pretend_gpu(monkeypatch):
    """Mechanisms believe that a GPU draws for them; whoever lets it draw is found out."""

    class NoDraws:
        def words(self, ids, k):
            raise AssertionError("a GPU drew")

        vectors = words

    def begin():
        monkeypatch.setattr(noise, "device_in_use", lambda: "cuda")
        monkeypatch.setattr(noise.NoiseMechanism, "_on_gpu", NoDraws())

    return begin


@pytest.mark.parametrize("name", ["cmp", "vickrey-mahalanobis"])
def test_a_seed_gives_the_same_figures_on_every_device(small_space, name, monkeypatch, pretend_gpu):
    monkeypatch.setattr(word_draws, "WORTH_SHARING", 0)
    monkeypatch.setattr(fewer_outputs, "WORTH_IT", 0)
    words, targets = np.arange(0, 2000, 90), Targets(max_unchanged=0.2)

    def figures():
        chosen = mechanism(name, space=small_space, epsilon=6.0)
        measured = deniability(chosen, words, draws=100, rng=3)
        reached = calibrate(chosen, targets, words=words, draws=60, rng=3)
        audited = fewer_outputs.with_fewer_outputs(chosen, words, as_generator(3))
        return measured.unchanged.tolist(), reached.epsilon, audited.space.output.ids.tolist()

    on_cpu = figures()
    pretend_gpu()
    assert mechanism(name, space=small_space).device == "cuda"
    assert figures() == on_cpu


def test_without_a_seed_a_gpu_makes_its_own_noise(small_space, monkeypatch, pretend_gpu):
    monkeypatch.setattr(word_draws, "WORTH_SHARING", 0)
    monkeypatch.setattr(fewer_outputs, "WORTH_IT", 0)
    pretend_gpu()
    chosen, words = mechanism("cmp", space=small_space, epsilon=6.0), np.arange(9)
    assert not isinstance(sampler_for(chosen, words, None, 8), CommonNoise)
    assert fewer_outputs.with_fewer_outputs(chosen, words, secure_generator()) is chosen
    with pytest.raises(AssertionError, match="a GPU drew"):
        deniability(chosen, words, draws=100)


@no_gpu
@pytest.mark.parametrize("command", ["deniability", "obfuscate", "sanitize", "attack"])
def test_commands_refuse_a_gpu_that_is_not_there(command, tmp_path):
    (tmp_path / "in.csv").write_text("text\na\n")
    arguments = {
        "deniability": ["cmp"],
        "obfuscate": ["a"],
        "sanitize": [str(tmp_path / "in.csv"), str(tmp_path / "out.csv"), "--column", "text"],
        "attack": [str(tmp_path / "in.csv")],
    }
    result = CliRunner().invoke(app, [command, *arguments[command], "--device", "cuda"])
    assert isinstance(result.exception, UsageError)
    assert "use device 'cpu'" in str(result.exception)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("asked", [["--device", "cpu"], []])
@pytest.mark.parametrize("command", ["deniability", "attack", "sanitize"])
def test_people_are_told_which_device(everyday_words, tmp_path, command, asked):
    (tmp_path / "in.csv").write_text("text\nskin cancer\n")
    released = {"text": "skin cancer", "variants": ["cancer skin"], "mechanism": "cmp"}
    (tmp_path / "releases.jsonl").write_text(json.dumps(released))
    files = [str(tmp_path / name) for name in ("in.csv", "out.csv")]
    arguments = {
        "deniability": ["cmp:epsilon=1", "--words", "3", "--draws", "100"],
        "attack": [str(tmp_path / "releases.jsonl")],
        "sanitize": [*files, "--column", "text", "--epsilon", "1"],
    }
    typed = [command, *arguments[command], "--space", str(everyday_words.folder), *asked]
    told = CliRunner().invoke(app, typed)
    assert told.exit_code == 0, (told.exception, told.stderr)
    assert f"device: {'cpu' if asked else device()}" in told.stderr


def test_what_is_printed_says_which_device(default_space, tmp_path):
    del default_space  # Skips where there is none.
    # So small an epsilon changes every word: that words come back would be warned of.
    common = ["--space", "glove-840b-34k", "--device", "cpu", "--epsilon", "1"]
    line = CliRunner().invoke(app, ["obfuscate", "skin cancer", "-o", "jsonl", *common])
    assert json.loads(line.stdout)["device"] == "cpu"
    (tmp_path / "in.csv").write_text("text\nskin cancer\n")
    files = [str(tmp_path / "in.csv"), str(tmp_path / "out.csv"), "--column", "text"]
    report = CliRunner().invoke(app, ["sanitize", *files, "--json", *common])
    assert report.exit_code == 0, (report.exception, report.stderr)
    assert json.loads(report.stdout)["device"] == "cpu"


def test_a_subclass_with_noise_of_its_own_is_not_drawn_by_its_parents_kernel():
    """On a GPU it would release the words of another mechanism."""

    class Louder(CMP):
        def noise(self, draws):
            return 2 * super().noise(draws)

    class Elsewhere(CMP):
        def near(self, points, k):
            return super().near(points + 1, k)

    class Last(VickreyCMP):
        def settle(self, points, draws):
            return self.near(points, 2)[0][:, 1]

    class Renamed(VickreyCMP):
        pass

    assert not any(same_on_gpu(kind) for kind in (Louder, Elsewhere, Last))
    assert all(same_on_gpu(kind) for kind in (CMP, Mahalanobis, VickreyMahalanobis, Renamed))


def test_on_a_device_the_winner_is_chosen_by_the_same_law(toy):
    torch = pytest.importorskip("torch", reason="torch is not installed (extra gpu)")
    rng = np.random.default_rng(6)
    distances = np.sort(rng.uniform(0, 2, (500, 3)), axis=1)
    distances[0] = 0
    distances[1, 0] = 0
    uniforms = rng.uniform(size=500)
    ids = torch.arange(500 * 3).reshape(500, 3)

    class Fixed:
        def uniform(self):
            return uniforms

    for law in ("rational", "exponential"):
        mechanism = VickreyCMP(toy, law=law, weights=(0.2, 0.5, 0.3))
        winner = mechanism._winner(distances, Fixed())
        arranged = mechanism.arranged(ids, torch.from_numpy(distances), torch.from_numpy(uniforms))
        assert np.array_equal(arranged[:, 0].numpy(), ids.numpy()[np.arange(500), winner])
        assert np.array_equal(np.sort(arranged.numpy(), axis=1), ids.numpy())
