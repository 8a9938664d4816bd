/**
 * Types of tensors that ggml had once, or that other programs write in files of their own: whose a number is, so that it can
 * be said which program reads the file. Their data is not read here.
 */

/** The first number of a run, and the names from there on; "" for a number that is nobody's. */
type Run = readonly [first: number, names: string];

const OWNERS: Readonly<Record<string, readonly Run[]>> = {
  "old versions of ggml, which removed it": [
    [4, "Q4_2 Q4_3"],
    [31, "Q4_0_4_4 Q4_0_4_8 Q4_0_8_8"],
    [37, "IQ4_NL_4_8 IQ4_NL_8_8"],
  ],
  "Microsoft's BitNet (bitnet.cpp)": [[36, "I2_S"]],
  "forks of llama.cpp with TurboQuant": [[43, "TURBO2_0 TURBO3_0 TQ3_1S TQ4_1S TURBO4_0"]],
  "ik_llama.cpp": [
    [133, "Q6_0 IQ1_BN IQ2_BN Q8_K64 IQ2_K IQ3_K IQ4_K IQ5_K IQ6_K"],
    [144, "IQ4_KS IQ2_KS IQ4_KSS Q8_K16 Q8_K32 Q8_KR8 Q8_K128 Q8_KV"],
    [152, "IQ5_KS IQ2_KT IQ3_KT IQ4_KT IQ3_KS IQ2_KL IQ1_KT"],
    [202, "Q4_0_R8"],
    [206, "Q5_0_R4  Q8_0_R8  Q2_K_R4 Q3_K_R4 Q4_K_R4 Q5_K_R4 Q6_K_R4"],
    [216, "IQ2_XXS_R4 IQ2_XS_R4 IQ3_XXS_R4 IQ1_S_R4 IQ4_NL_R4 IQ3_S_R4 IQ2_S_R4 IQ4_XS_R8"],
    [229, "IQ1_M_R4 BF16_R16"],
    [233, "Q6_0_R4"],
    [335, "IQ2_BN_R4  IQ2_K_R4 IQ3_K_R4 IQ4_K_R4 IQ5_K_R4"],
    [344, "IQ4_KS_R4"],
    [352, "IQ5_KS_R4 MXFP4_R8"],
    [397, "Q8_K_R16 Q8_KV_R8 Q8_K_R8"],
  ],
};

const origins = new Map<string, string>();
for (const [owner, runs] of Object.entries(OWNERS)) {
  for (const [first, names] of runs) {
    for (const [at, name] of names.split(" ").entries()) {
      if (name !== "") origins.set(`unknown(${first + at})`, `${name} of ${owner}`);
    }
  }
}

/** Whose the type `unknown(NUMBER)` is: "IQ4_K of ik_llama.cpp". Undefined for every other name. */
export function foreignType(type: string): string | undefined {
  return origins.get(type);
}
