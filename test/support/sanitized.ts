/** Whether the addon is built with sanitizers, which need several times the memory and the time. */
export const sanitized = process.env.GGUF_NATIVE_TEST_SANITIZED !== undefined;
