/** Whether the processor is an emulated one, where everything takes many times as long. */
export const emulated = process.env.GGUF_NATIVE_TEST_EMULATED !== undefined;
