/** A CommonJS module that uses the package. */
import gguf = require("gguf-native");
import reference = require("gguf-native/reference");

const file: gguf.GgufFile = gguf.openSync(process.argv[2] as string);
const tensor: gguf.GgufTensor = file.tensor("Q4_0.gaussian");
const values: Float32Array = tensor.dequantizeSync();
const options: gguf.DequantizeOptions = { start: 0, end: 32 };
const either: Float32Array | Uint16Array = reference.dequantizeSync("Q4_0", tensor.bytes(), options);
process.stdout.write(JSON.stringify({ lengths: [values.length, either.length], names: Object.keys(gguf).sort() }));
