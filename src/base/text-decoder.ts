/** The decoder of UTF-8 of this runtime. */

interface Runtime {
  TextDecoder?: typeof TextDecoder;
  process?: { getBuiltinModule?(name: string): { TextDecoder: typeof TextDecoder } };
}

const { TextDecoder: own, process } = globalThis as Runtime;

/** In Jest's environment "jsdom" there is no TextDecoder; Node's is the one that it replaces. */
export const Decoder = (own ?? process?.getBuiltinModule?.("util").TextDecoder) as typeof TextDecoder;
