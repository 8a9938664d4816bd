"""Writes all-MiniLM-L6-v2 as ONNX, in binary32 and with weights of 8 bits: all-minilm-l6-v2.onnx, all-minilm-l6-v2-q8.onnx.

python3 minilm_onnx.py FOLDER
FOLDER is that of `npm run models`. Needs torch 2.13.0, transformers 5.23.0, safetensors 0.8.0, onnx 1.23.2, onnxscript 0.7.2
and onnxruntime 1.32.0.
"""

import sys
from pathlib import Path

import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from transformers import BertModel

INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
OUTPUT = "last_hidden_state"


class Hidden(torch.nn.Module):
    """A model that gives the last hidden state alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *inputs):
        return self.model(**dict(zip(INPUTS, inputs)))[OUTPUT]


folder = Path(sys.argv[1])
model = BertModel.from_pretrained(folder / "all-MiniLM-L6-v2", attn_implementation="eager")
tokens = torch.tensor([[101, 2023, 2003, 102]] * 2)
path = folder / "all-minilm-l6-v2.onnx"
torch.onnx.export(
    Hidden(model),
    (tokens, torch.ones_like(tokens), torch.zeros_like(tokens)),
    path,
    input_names=INPUTS,
    output_names=[OUTPUT],
    dynamic_axes={name: {0: "batch", 1: "length"} for name in [*INPUTS, OUTPUT]},
    opset_version=17,
    dynamo=False,
)
quantize_dynamic(path, folder / "all-minilm-l6-v2-q8.onnx", weight_type=QuantType.QInt8)
