"""Writes the vectors that PyTorch computes of some texts with all-MiniLM-L6-v2: test/fixtures/minilm-vectors.json.

python3 minilm_vectors.py FOLDER OUT.json
FOLDER is that of `npm run models`. Needs torch 2.13.0, transformers 5.23.0, tokenizers 0.23.3 and safetensors 0.8.0.
"""

import json
import sys
from pathlib import Path

import torch
from tokenizers import BertWordPieceTokenizer
from transformers import BertModel

TEXTS = [
    "A man is eating a piece of bread.",
    "Someone eats.",
    "The girl is carrying a baby.",
    "A cheetah chases prey across a field.",
    "Weights are multiplied where they lie in the file.",
    "The price of oil rose by 3.5% on Tuesday, the highest since 2014.",
    "Wie spät ist es?",
    "naïve café — 漢字 🦙",
    "x",
    "",
    "Short texts and long ones have as many numbers, and all of them have a length of one. " * 14,
    'int main(void) { return printf("hello\\n"); }',
]

folder = Path(sys.argv[1]) / "all-MiniLM-L6-v2"
model = BertModel.from_pretrained(folder)
words = (folder / "vocab.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
tokenizer = BertWordPieceTokenizer({word: i for i, word in enumerate(words)}, lowercase=True)

vectors = []
with torch.no_grad():
    for text in TEXTS:
        tokens = tokenizer.encode(text).ids
        mean = model(input_ids=torch.tensor([tokens])).last_hidden_state[0].double().mean(0)
        vector = [round(x, 5) for x in (mean / mean.norm()).tolist()]
        vectors.append({"text": text, "tokens": tokens, "vector": vector})
lines = ",\n".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in vectors)
Path(sys.argv[2]).write_text(f"[\n{lines}\n]\n", encoding="utf-8")
