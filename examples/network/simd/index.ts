/**
 * The functions of a network between its products, four numbers at a time. Written in AssemblyScript, a language like
 * TypeScript that compiles to WebAssembly. Its operations on four numbers have one result on every engine and processor. All
 * addresses are those of numbers of binary32.
 */
export { addAndGelu, gatedByGelu, gatedBySilu } from "./activations";
export { greatestOf, rope, softmax, spread, sumOfPowers } from "./attention";
export { addAndNorm, rmsNorm } from "./norms";
export { add, copyRuns, scale, transpose } from "./plain";

/** Where the constants end, and other numbers may begin. */
export const end: usize = __heap_base;
