"""Runs llama.cpp's converter in the folder CONVERTER for each of JOBS: [model, out, type, rule for words or null]."""

import json
import runpy
import sys

folder, jobs = sys.argv[1:]
sys.path.insert(0, folder)

from conversion.base import TextModel  # noqa: E402
from conversion.gemma import EmbeddingGemma  # noqa: E402

rule_of = TextModel.get_vocab_base_pre
for model, out, kind, rule in json.loads(jobs):
    # Vocabularies of tests are too small for it to know their rule.
    TextModel.get_vocab_base_pre = rule_of if rule is None else lambda self, tokenizer, rule=rule: rule
    # It would add those of one model to the next.
    EmbeddingGemma.module_paths, EmbeddingGemma.dense_features_dims = [], {}
    dense = "--sentence-transformers-dense-modules"
    sys.argv = ["convert_hf_to_gguf.py", model, "--outfile", out, "--outtype", kind, dense]
    runpy.run_path(f"{folder}/convert_hf_to_gguf.py", run_name="__main__")
