/**
 * `gguf-native/network` in Node.js.
 *
 * @module gguf-native/network
 */
import "../backend/bundled"; // before all else

export * from "./public";
