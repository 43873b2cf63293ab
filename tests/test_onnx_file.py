"""Networks written without the package onnx are what that package reads, and what was meant."""

from __future__ import annotations

import numpy as np
import pytest

from sottovoce.encoders.onnx_file import UINT8, OnnxFile


def written() -> tuple[OnnxFile, bytes]:
    file = OnnxFile()
    file.constant("weights", np.arange(60, dtype=np.float32).reshape(3, 20))
    file.constant("axis", np.array([-1]))
    file.node("ReduceMax", ["x", "axis"], ["most"], "", keepdims=1)
    file.node("Cast", ["most"], ["whole"], "", to=UINT8)
    file.node("LayerNormalization", ["x", "weights", ""], ["y", "z"], "com.example", epsilon=1e-12)
    shapes = {"x": ("texts", "places", 3)}
    return file, file.finished(shapes, {"y": ("texts", 300)}, {"": 18, "com.example": 1})


def test_the_package_onnx_reads_what_was_written():
    onnx = pytest.importorskip("onnx")
    file, data = written()
    model = onnx.load_model_from_string(data)
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [
        ("", 18),
        ("com.example", 1),
    ]
    first, cast, last = model.graph.node
    assert (first.op_type, list(first.input), list(first.output)) == (
        "ReduceMax",
        ["x", "axis"],
        ["most"],
    )
    assert (cast.attribute[0].name, cast.attribute[0].i) == ("to", onnx.TensorProto.UINT8)
    assert (last.domain, list(last.input)) == ("com.example", ["x", "weights", ""])
    assert last.attribute[0].f == pytest.approx(1e-12)
    shape = model.graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in shape] == ["texts", "places", 3]
    assert model.graph.output[0].type.tensor_type.shape.dim[1].dim_value == 300
    named, small = model.graph.initializer
    assert (named.name, list(named.dims)) == ("weights", [3, 20])
    assert named.data_location == onnx.TensorProto.EXTERNAL
    assert onnx.numpy_helper.to_array(small).tolist() == [-1]
    assert list(file.arrays) == ["weights"]


def test_a_session_computes_with_the_arrays_it_is_given():
    onnxruntime = pytest.importorskip("onnxruntime")
    file = OnnxFile()
    matrix = np.arange(40, dtype=np.float32).reshape(4, 10)
    file.node("MatMul", ["x", file.constant("matrix", matrix)], ["y"], "")
    data = file.finished({"x": ("n", 4)}, {"y": ("n", 10)}, {"": 18})
    options = onnxruntime.SessionOptions()
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in file.arrays.values()]
    options.add_external_initializers(list(file.arrays), values)
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    rows = np.eye(4, dtype=np.float32)[[2, 0]]
    assert np.array_equal(session.run(["y"], {"x": rows})[0], matrix[[2, 0]])
