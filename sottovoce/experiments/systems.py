"""The mechanisms and published releases of an experiment's file, with all that they need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from sottovoce.choices import RELEASES, UnknownPolicy
from sottovoce.errors import SottovoceError
from sottovoce.experiments.description import Published, System, Texts
from sottovoce.experiments.named import Named
from sottovoce.experiments.problems import Section, said
from sottovoce.mechanisms import parse
from sottovoce.mechanisms.base import Mechanism, PoolMechanism, WordMechanism, public_name
from sottovoce.mechanisms.build import RESOURCE_KINDS, load_resource
from sottovoce.text.protection import protected_tags

EPSILON = "{epsilon}"


def read_texts(section: Section, named: Named, default: Texts) -> Texts:
    """What mechanisms work on, and how texts are cut; the default where the file says nothing."""
    space, pool = section.optional("space"), section.optional("pool")
    vocabulary, encoder = section.optional("output_vocabulary"), section.optional("encoder")
    protect = section.optional("protect", default.protect)
    if protect is not None:
        try:
            protected_tags(protect)
        except SottovoceError as error:
            section.problem("protect", error)
            protect = default.protect
    return Texts(
        space=named.space(section, "space", space) if space else default.space,
        output_vocabulary=named.vocabulary(section, "output_vocabulary", vocabulary)
        if vocabulary
        else default.output_vocabulary,
        pool=named.strings(section, "pool", pool) if pool else default.pool,
        encoder=named.encoder(section, "encoder", encoder) if encoder else default.encoder,
        unknown=section.choice("unknown", default.unknown, get_args(UnknownPolicy)),
        protect=protect,
    )


def read_systems(
    mechanisms: list[Section], grid: Section, named: Named, texts: Texts, most: int
) -> tuple[System, ...]:
    """The mechanisms of [grid] and of each [[mechanism]]; ``most`` is the largest N."""
    plain = grid.texts("mechanisms")
    blocks = [
        Section({"spec": spec}, grid.place("mechanisms", at), grid.problems)
        for at, spec in enumerate(plain, start=1)
    ]
    systems: list[System] = []
    for block in (*blocks, *mechanisms):
        system = _system(block, grid, named, texts, most)
        for other in systems:
            _refuse_double(block, system, other)
        systems.append(system)
    return tuple(systems)


def _system(block: Section, grid: Section, named: Named, texts: Texts, most: int) -> System:
    spec = block.text("spec", required=True)
    own = read_texts(block, named, texts)
    parsed = _parsed(block, spec) if spec else None
    system = System(
        spec=spec,
        label=block.text("label", spec),
        epsilons=_epsilons(block, grid, parsed and parsed[0]),
        releases=_releases(block, grid, parsed and parsed[0]),
        texts=own,
    )
    if parsed is not None:
        _check_parts(block, *parsed, system, most)
    block.finish()
    return system


def _parsed(block: Section, spec: str) -> tuple[type[Mechanism], dict[str, Any]] | None:
    """The class and arguments of a spec, which leaves epsilon to the grid."""
    try:
        kind, arguments = parse(spec)
    except SottovoceError as error:
        block.problem("spec", error)
        return None
    if arguments.pop("epsilon", None) is not None:
        block.problem("spec", "leave epsilon out of it, and list it in epsilons")
    return kind, arguments


def _epsilons(
    block: Section, grid: Section, kind: type[Mechanism] | None
) -> tuple[float | None, ...]:
    own, shared = tuple(sorted(block.epsilons())), tuple(sorted(grid.epsilons()))
    if kind is not None and "epsilon" not in map(public_name, kind.parameters()):
        if block.has("epsilons"):
            block.problem("epsilons", f"{kind.name} has no epsilon: leave the key out")
        return (None,)
    if not own and not shared and not (block.has("epsilons") or grid.has("epsilons")):
        block.problem("epsilons", "there are none: list them here or in [grid]")
    return own or shared


def _releases(block: Section, grid: Section, kind: type[Mechanism] | None) -> tuple[str, ...]:
    """Own ones must be possible; of the grid's those are left out that are not."""
    own = block.choices("releases", (), RELEASES)
    shared = grid.choices("releases", ("independent",), RELEASES)
    if kind is None or kind.supports_once:
        return own or shared
    cannot = f"{kind.name} cannot release 'once', as it draws no noise"
    if "once" in own:
        block.problem("releases", f"{cannot}: use 'independent'")
    if own:
        return own
    possible = tuple(each for each in shared if each != "once")
    if shared and not possible:
        block.problem("releases", f'{cannot}, and [grid] has nothing else: give it ["independent"]')
    return possible


def _check_parts(
    block: Section, kind: type[Mechanism], arguments: dict[str, Any], system: System, most: int
) -> None:
    """Build the mechanism, as far as this costs nothing: its own checks speak."""
    parts = {name: _part(block, name, system.texts) for name in kind.resources()}
    if None in parts.values():
        return
    for epsilon in system.epsilons:
        given = arguments if epsilon is None else arguments | {"epsilon": epsilon}
        try:
            built = kind(**parts, **given)
        except SottovoceError as error:
            block.problem("spec", error)
            return
        protects = system.texts.protect or built.protects
    if system.epsilons and not issubclass(kind, PoolMechanism) and protected_tags(protects):
        _check_tagger(block)
    if issubclass(kind, WordMechanism) and "once" in system.releases:
        there = len(parts["space"].output)
        if most > there:
            block.problem(
                "releases",
                f"'once' reads {most} different words off one point, but only {there} may be "
                "released: lower grid.n",
            )


def _part(block: Section, name: str, texts: Texts) -> Any:
    """Something to build a mechanism with, or nothing where it is missing.

    What takes time to load is stood in for: no parameter's range depends on it.
    """
    kind = RESOURCE_KINDS[name]
    settings = kind.complete(vars(texts))
    if name == "pool" and texts.pool is None:
        block.problem("pool", "it releases strings of a public pool: give pool here or [texts]")
        return None
    try:
        return kind.load(settings, None) if kind.cheap else kind.stand_in(settings)
    except (SottovoceError, OSError, ValueError) as error:
        if name == "space":
            block.problems.add(_owner(block, _wrong_setting(settings)), said(error))
        else:
            block.problem("spec", said(error))
        return None


def _wrong_setting(settings: Mapping[str, Any]) -> str:
    """Which setting of a word space that cannot be loaded is to blame."""
    try:
        load_resource("space", {**settings, "output_vocabulary": "all"})
    except (SottovoceError, OSError, ValueError):
        return "space"
    return "output_vocabulary"


def _owner(block: Section, key: str) -> str:
    """Where a setting of texts stands that a mechanism may override."""
    return block.place(key) if block.has(key) else f"texts.{key}"


def _check_tagger(block: Section) -> None:
    from sottovoce.language.tagging import load_tagger

    try:
        load_tagger()
    except SottovoceError as error:
        block.problem("protect", error)


def _refuse_double(block: Section, system: System, other: System) -> None:
    """Two systems share no label, unless they are one mechanism with other settings."""
    same = _identity(system) == _identity(other)
    if system.label == other.label and not same:
        block.problem("label", f"'{system.label}' names another mechanism above: choose another")
    if same and _settings(system) & _settings(other):
        block.problem("spec", f"'{system.spec}' is there twice with one epsilon: leave one out")


def _identity(system: System) -> tuple[object, ...]:
    """What tells mechanisms apart: a spec may say a default or not."""
    try:
        kind, arguments = parse(system.spec)
    except SottovoceError:
        return system.spec, system.texts
    values = [arguments.get(each.name, each.default) for each in kind.parameters()]
    return kind, *values, system.texts


def _settings(system: System) -> set[tuple[float | None, str]]:
    return {(epsilon, release) for epsilon in system.epsilons for release in system.releases}


def read_published(
    blocks: list[Section], named: Named, systems: tuple[System, ...], texts: Texts
) -> tuple[Published, ...]:
    """Each [[published]]."""
    taken = {system.label for system in systems}
    found = []
    for block in blocks:
        label, spec = block.text("label", required=True), block.optional("spec")
        if label and label in taken:
            block.problem("label", f"'{label}' names something above: choose another")
        taken.add(label)
        files, epsilons = _files(block, named)
        if spec and (parsed := _parsed(block, spec)) is not None:
            _check_assumed(block, *parsed, System(spec, label, epsilons, (), texts))
        block.finish()
        found.append(Published(label=label, files=files, epsilons=epsilons, spec=spec))
    return tuple(found)


def _check_assumed(
    block: Section, kind: type[Mechanism], arguments: dict[str, Any], system: System
) -> None:
    """The mechanism that an attacker assumes needs the epsilons that were used."""
    if "epsilon" in map(public_name, kind.parameters()) and None in system.epsilons:
        block.problem("epsilons", f"{kind.name} has one: say which was used, or leave spec out")
    else:
        _check_parts(block, kind, arguments, system, 1)


def _files(block: Section, named: Named) -> tuple[tuple[str, ...], tuple[float | None, ...]]:
    """Files with their epsilons, the smallest first: a list, or a pattern with ``{epsilon}``."""
    epsilons = block.epsilons()
    pattern = block.values.get("files")
    if isinstance(pattern, str) and EPSILON in pattern:
        block.has("files")
        if not epsilons:
            block.problem("epsilons", f"list them, each for a file: files has {EPSILON} in it")
        names = tuple(pattern.replace(EPSILON, f"{each:g}") for each in epsilons)
    elif isinstance(pattern, str):
        names = (block.text("files"),)
    else:
        names = block.texts("files")
        if not names:
            block.problem("files", f"name at least one file, or a pattern with {EPSILON} in it")
    if not epsilons and len(names) < 2:
        return tuple(named.file(block, "files", name) for name in names), (None,) * len(names)
    if len(epsilons) != len(names):
        block.problem("epsilons", f"there are {len(names)} files: give as many epsilons")
    paths = [named.file(block, "files", name, at) for at, name in enumerate(names, start=1)]
    pairs = sorted(zip(epsilons, paths, strict=False))
    return tuple(path for _, path in pairs), tuple(epsilon for epsilon, _ in pairs)
