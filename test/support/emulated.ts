/** Whether the processor is emulated, so that everything takes many times as long. */
export const emulated = process.env.GGUF_NATIVE_TEST_EMULATED !== undefined;
