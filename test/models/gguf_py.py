"""What gguf-py finds in a GGUF file, as JSON: metadata, tensors, and with --values the SHA-256 of each tensor's bytes and numbers.

Usage: gguf_py.py FILE [--values]
"""

import hashlib
import json
import sys

import gguf
import gguf.quants
import numpy


def sha256(array):
    return hashlib.sha256(numpy.ascontiguousarray(array).tobytes()).hexdigest()


def plain(value):
    """Numbers of NumPy as Python's own."""
    return value.tolist() if hasattr(value, "tolist") else value


# The reader takes a slice for each token, a million in all. Slices of arrays take a fifth of the time of those of maps.
numpy.memmap = lambda path, mode: numpy.fromfile(path, dtype=numpy.uint8)

path = sys.argv[1]
with_values = "--values" in sys.argv
reader = gguf.GGUFReader(path)
result = {"metadata": [], "tensors": []}
for name, field in reader.fields.items():
    if name.startswith("GGUF."):
        continue
    result["metadata"].append([name, [t.name for t in field.types], plain(field.contents())])
for tensor in reader.tensors:
    entry = {
        "name": tensor.name,
        "type": tensor.tensor_type.name,
        "shape": [int(n) for n in tensor.shape],
        "offset": int(tensor.data_offset),
    }
    if with_values:
        entry["bytes"] = sha256(tensor.data)
        numbers = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        entry["values"] = sha256(numbers.astype("<f4"))
    result["tensors"].append(entry)
json.dump(result, sys.stdout)
