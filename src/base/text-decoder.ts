/** The decoder and the encoder of UTF-8 of this runtime. */

interface Runtime {
  TextDecoder?: typeof TextDecoder;
  TextEncoder?: typeof TextEncoder;
  process?: { getBuiltinModule?(name: string): Required<Runtime> };
}

/** In Jest's environment "jsdom" there are none; Node's are those that it replaces. */
const runtime = globalThis as Runtime;
const own = runtime.TextDecoder && runtime.TextEncoder ? runtime : runtime.process?.getBuiltinModule?.("util");
const { TextDecoder: Decoder, TextEncoder: Encoder } = own as Required<Runtime>;

export { Decoder };

const encoder = new Encoder();

/** The bytes of a text in UTF-8. */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Writes the characters of a text that fit whole; returns how many bytes they have. */
export function utf8Into(text: string, bytes: Uint8Array): number {
  return encoder.encodeInto(text, bytes).written;
}
