/** Run by itself, on the instruction set that GGUF_NATIVE_ISA names: prints how the functions between products differ from the reference. */
import { cpu } from "gguf-native";
import * as network from "gguf-native/network";
import { compareWithReference } from "./network-cases";

console.log(JSON.stringify({ isa: cpu().isa, ...compareWithReference(network) }));
