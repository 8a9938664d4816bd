import { cpu } from "gguf-native";

/** Whether the processor is emulated, so that everything takes many times as long. */
export const emulated = process.env.GGUF_NATIVE_TEST_EMULATED !== undefined;

/** For tests of which another processor changes nothing. */
export const sameElsewhere = { skip: emulated && "no other on another processor" };

/** Instruction sets to compare with TypeScript: an emulator takes a minute for each, and the C++ tests have all of them there. */
export const comparedIsas = emulated ? cpu().available.slice(0, 1) : cpu().available;
