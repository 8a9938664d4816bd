/** Whether the processor is emulated, so that everything takes many times as long. */
export const emulated = process.env.GGUF_NATIVE_TEST_EMULATED !== undefined;

/** For tests of which another processor changes nothing. */
export const sameElsewhere = { skip: emulated && "no other on another processor" };
