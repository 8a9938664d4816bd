/** Rotary position embeddings: the angles of pairs. */
import { checkOptionNames, type OptionNames } from "../base/arguments";
import { invalidArgType, invalidArgValue } from "../base/errors";
import { lengthOf, typedArrayName } from "../base/typed-arrays";
import * as check from "./checks";
import { cosAndSin, ln, preciseExp } from "./elementary";
import type { RotationsOptions, YarnOptions } from "./options";

const OPTIONS: OptionNames<RotationsOptions> = {
  ...{ width: true, base: true, scale: true, factors: true, pairs: true, yarn: true, sections: true },
};
const YARN: OptionNames<YarnOptions> = {
  ...{ factor: true, originalContext: true, attentionFactor: true },
  ...{ betaFast: true, betaSlow: true, extrapolation: true },
};

/** What {@link rope} needs of some tokens. @internal */
export interface RopeTable {
  pairs: number;
  adjacent: boolean;
  /** For each token, the cosines of its angles, then their sines. */
  table: Float32Array;
}

/** The angles of `tokens` tokens. @internal */
export let tableOf: (rotations: Rotations, headWidth: number, position: unknown, tokens: number) => RopeTable;

/**
 * The angles by which {@link rope} rotates the pairs of numbers of a head. They are computed in binary64, and their cosines and
 * sines rounded to binary32, with the same bits everywhere; those of the last tokens are kept, so that all layers of a model
 * share them.
 */
export class Rotations {
  readonly #frequencies: Float64Array;
  readonly #magnitude: number;
  readonly #adjacent: boolean;
  /** For each pair, which of the positions of a token it turns by. */
  readonly #sections: Uint8Array;
  /** How many positions a token has. */
  readonly #perToken: number;
  #positions: Int32Array = new Int32Array(0);
  /** The position of the first token, where all others followed it. */
  #first: number | undefined;
  #table: Float32Array = new Float32Array(0);

  static {
    tableOf = (rotations, headWidth, position, tokens) => {
      if (typeof rotations !== "object" || rotations === null || !(#table in rotations)) {
        throw invalidArgType("rotations", "an instance of Rotations", rotations);
      }
      const pairs = rotations.#frequencies.length;
      if (2 * pairs > headWidth) {
        throw check.outOfRange(`headWidth is ${headWidth}, but the rotations have a width of ${2 * pairs}`);
      }
      const table = rotations.#tableOf(position, tokens);
      return { pairs, adjacent: rotations.#adjacent, table };
    };
  }

  /**
   * @throws TypeError ERR_INVALID_ARG_TYPE for an option of the wrong type, ERR_INVALID_ARG_VALUE for `pairs` of another name or
   *   both `scale` and `yarn`
   * @throws GgufError ERR_GGUF_RANGE for a width that is not even, a `base` of 1 or less, a `scale` or a number of `factors` or
   *   `yarn` that is not above 0, or another number of factors than width / 2
   */
  constructor(options: RotationsOptions) {
    checkOptionNames(options, OPTIONS);
    const { width: givenWidth, base: givenBase, scale: givenScale, factors, pairs, yarn, sections } = options;
    const width = check.whole("options.width", givenWidth, 2, 2 ** 24);
    if (width % 2 !== 0) throw check.outOfRange(`options.width must be even, found ${width}`);
    const base = check.positive("options.base", givenBase);
    if (base <= 1) throw check.outOfRange(`options.base must be above 1, found ${base}`);
    const scale = givenScale === undefined ? 1 : check.positive("options.scale", givenScale);
    this.#adjacent = check.oneOf("options.pairs", pairs, ["adjacent", "halves"]) === "adjacent";
    const count = check.floatsOrNone("options.factors", factors);
    check.sameLength("options.factors", count, width / 2, "half of options.width is");
    const angles = Float64Array.from({ length: width / 2 }, (_, pair) => {
      const factor = factors === undefined ? 1 : check.positive(`options.factors[${pair}]`, factors[pair]);
      return preciseExp(((-2 * pair) / width) * ln(base)) / scale / factor;
    });
    const counts = sections === undefined ? [1] : checkSections(sections);
    this.#perToken = counts.length;
    this.#sections = sectionsOf(counts, width / 2);
    if (yarn !== undefined && givenScale !== undefined) {
      throw invalidArgValue("options.scale", "must not be given beside options.yarn", givenScale);
    }
    const stretched = yarn === undefined ? { angles, magnitude: 1 } : stretch(angles, width, base, yarn);
    this.#frequencies = stretched.angles;
    this.#magnitude = stretched.magnitude;
  }

  #tableOf(position: unknown, tokens: number): Float32Array {
    const perToken = this.#perToken;
    const sameCount = this.#positions.length === tokens * perToken;
    if (sameCount && typeof position === "number" && position === this.#first) return this.#table;
    const positions = positionsOf(position, tokens, perToken);
    if (sameCount && positions.every((each, i) => each === this.#positions[i])) return this.#table;
    const pairs = this.#frequencies.length;
    const table = check.newFloats(2 * tokens * pairs);
    for (let token = 0; token < tokens; token++) {
      for (let pair = 0; pair < pairs; pair++) {
        const at = positions[token * perToken + (this.#sections[pair] as number)] as number;
        const [cos, sin] = cosAndSin(at * (this.#frequencies[pair] as number));
        table[2 * token * pairs + pair] = cos * this.#magnitude;
        table[(2 * token + 1) * pairs + pair] = sin * this.#magnitude;
      }
    }
    this.#first = typeof position === "number" ? position : undefined;
    this.#positions = positions;
    this.#table = table;
    return table;
  }
}

/** The positions of all tokens, a copy. */
function positionsOf(position: unknown, tokens: number, perToken: number): Int32Array {
  if (typeof position === "number") {
    const first = check.whole("position", position, -(2 ** 31), 2 ** 31 - Math.max(tokens, 1));
    return Int32Array.from({ length: tokens * perToken }, (_, i) => first + Math.floor(i / perToken));
  }
  if (typedArrayName(position) !== "Int32Array") {
    throw invalidArgType("position", "of type number or an instance of Int32Array", position);
  }
  const found = lengthOf(position as Int32Array);
  const each = perToken === 1 ? "" : ` of ${perToken} positions each`;
  check.sameLength("position", found, tokens * perToken, `for ${tokens} tokens${each} it must have`);
  return Int32Array.from({ length: found }, (_, i) => (position as Int32Array)[i] as number);
}

function checkSections(sections: unknown): number[] {
  if (!Array.isArray(sections)) throw invalidArgType("options.sections", "an instance of Array", sections);
  check.whole("the length of options.sections", sections.length, 1, 255);
  const counts = sections.map((count, i) => check.whole(`options.sections[${i}]`, count, 0, 2 ** 24));
  if (counts.every((count) => count === 0)) throw check.outOfRange("options.sections has no pairs");
  return counts;
}

/** The section of each pair. */
function sectionsOf(counts: readonly number[], pairs: number): Uint8Array {
  const all = new Uint8Array(pairs);
  for (let pair = 0; pair < pairs; ) {
    counts.forEach((count, section) => {
      all.fill(section, pair, pair + count);
      pair += count;
    });
  }
  return all;
}

/** The angles by YaRN, of which `angles` are those without it, and what cosines and sines are multiplied with. */
function stretch(
  angles: Float64Array,
  width: number,
  base: number,
  options: YarnOptions,
): { angles: Float64Array; magnitude: number } {
  checkOptionNames(options, YARN);
  const { attentionFactor = 1, betaFast = 32, betaSlow = 1, extrapolation = 1 } = options;
  const factor = check.positive("options.yarn.factor", options.factor);
  const context = check.positive("options.yarn.originalContext", options.originalContext);
  const attention = check.positive("options.yarn.attentionFactor", attentionFactor);
  const share = check.numeric("options.yarn.extrapolation", extrapolation);
  if (!(share >= 0 && share <= 1)) {
    throw check.outOfRange(`options.yarn.extrapolation must be from 0 to 1, found ${share}`);
  }
  /** The pair that turns so often in the original context. */
  const pairOf = (turns: number): number => (width * ln(context / (turns * 2 * Math.PI))) / (2 * ln(base));
  const low = Math.max(0, Math.floor(pairOf(check.positive("options.yarn.betaFast", betaFast))));
  const high = Math.min(width - 1, Math.ceil(pairOf(check.positive("options.yarn.betaSlow", betaSlow))));
  const stretched = angles.map((angle, pair) => {
    const ramp = Math.min(1, Math.max(0, (pair - low) / Math.max(0.001, high - low)));
    const kept = (1 - ramp) * share;
    return (angle / factor) * (1 - kept) + angle * kept;
  });
  return { angles: stretched, magnitude: share === 0 ? attention : attention * (1 + 0.1 * ln(factor)) };
}
