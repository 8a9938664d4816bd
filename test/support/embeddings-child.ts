/**
 * Run by itself, with the kernels that the environment names: computes vectors of texts with the model whose path is its
 * argument, with one and with two threads, and prints their bits as JSON.
 */
import { readFileSync } from "node:fs";
import { cpu, parse } from "gguf-native";
import { embedTexts } from "./embeddings-run";

const file = parse(readFileSync(process.argv[2] as string));
void embedTexts(file, [1, 2]).then((runs) => console.log(JSON.stringify({ isa: cpu().isa, runs })));
