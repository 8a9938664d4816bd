/**
 * Globs for names of tensors and metadata keys. `*` stands for any number of characters, also none; `?` for one
 * character; `[abc]`, `[a-z]` for one of a set, `[!abc]` or `[^abc]` for one that is not in it. The character after a
 * backslash stands for itself. Nothing else is special: names are not paths, so `*` matches dots and slashes as well. A
 * bracket that is never closed stands for itself.
 */

/** A step of a glob. */
interface Step {
  /** Matches one character (a code point); `undefined` stands for `*`. */
  readonly accepts: ((char: string) => boolean) | undefined;
  /** Whether it is more than a character that stands for itself. */
  readonly isWild: boolean;
}

/** Whether `text` could be meant as a glob rather than as a name. */
export function isGlob(text: string): boolean {
  return /[*?[\\]/.test(text);
}

/** A function that tells whether a name matches the glob, in time proportional to the product of both lengths at worst. */
export function globMatcher(glob: string): (name: string) => boolean {
  const steps = compile([...glob]);
  return (name) => beginnings(steps, [...name]) !== undefined;
}

/**
 * A function that makes a new name of one that matches a glob: each `*` of `to` becomes what the wildcard of the same
 * number (`*`, `?` or a set) has matched, a `*` as little as it can, and a character after a backslash stands for itself.
 * Undefined for a name that does not match.
 * @throws Error where `to` has another number of `*` than the glob has wildcards
 */
export function globRenamer(glob: string, to: string): (name: string) => string | undefined {
  const steps = compile([...glob]);
  const wildcards = steps.flatMap(({ isWild }, i) => (isWild ? [i] : []));
  const texts = textsBetweenStars(to);
  if (texts.length - 1 !== wildcards.length) {
    const [found, wanted] = [texts.length - 1, wildcards.length];
    throw new Error(`'${to}' has ${found} '*', but '${glob}' has ${wanted} wildcards: each needs one`);
  }
  return (name) => {
    const chars = [...name];
    const begins = beginnings(steps, chars);
    if (begins === undefined) return undefined;
    const found = wildcards.map((step) => chars.slice(begins[step], begins[step + 1]).join(""));
    return texts.map((text, i) => text + (found[i] ?? "")).join("");
  };
}

/** What stands before, between and after the stars of a text. */
function textsBetweenStars(text: string): string[] {
  const texts = [""];
  for (const [part] of text.matchAll(/\\?./gsu)) {
    if (part === "*") texts.push("");
    else texts.push(texts.pop() + part.replace(/^\\(?=.)/su, ""));
  }
  return texts;
}

function compile(glob: readonly string[]): Step[] {
  const steps: Step[] = [];
  /** Where the last set can end: a bracket that opens behind it is never closed, and is not looked for again. */
  const lastClose = glob.lastIndexOf("]");
  for (let i = 0; i < glob.length; i++) {
    const char = glob[i] as string;
    const close = char === "[" && i < lastClose ? closingBracket(glob, i) : -1;
    if (char === "*") steps.push({ accepts: undefined, isWild: true });
    else if (char === "?") steps.push({ accepts: () => true, isWild: true });
    else if (close >= 0) {
      steps.push({ accepts: oneOfSet(glob.slice(i + 1, close)), isWild: true });
      i = close;
    } else {
      const literal = char === "\\" && i + 1 < glob.length ? glob[++i] : char;
      steps.push({ accepts: (found) => found === literal, isWild: false });
    }
  }
  return steps;
}

/** Where the set that opens at `open` ends; a bracket right at its start is one of its characters. */
function closingBracket(glob: readonly string[], open: number): number {
  const first = open + 1 + (glob[open + 1] === "!" || glob[open + 1] === "^" ? 1 : 0);
  return glob.indexOf("]", first + 1);
}

function oneOfSet(set: readonly string[]): NonNullable<Step["accepts"]> {
  const negated = set[0] === "!" || set[0] === "^";
  const ranges: [number, number][] = [];
  for (let i = negated ? 1 : 0; i < set.length; i++) {
    const isRange = set[i + 1] === "-" && i + 2 < set.length;
    const from = codeOf(set[i]);
    ranges.push([from, isRange ? codeOf(set[i + 2]) : from]);
    if (isRange) i += 2;
  }
  return (char) => ranges.some(([from, to]) => codeOf(char) >= from && codeOf(char) <= to) !== negated;
}

function codeOf(char: string | undefined): number {
  return (char as string).codePointAt(0) as number;
}

/**
 * Where in a name each step begins, and where the last one ends; undefined where it does not match. Goes back to the last
 * `*` only: what an earlier one matched never needs to change.
 */
function beginnings(steps: readonly Step[], name: readonly string[]): number[] | undefined {
  const begins: number[] = [];
  let step = 0;
  let star = -1;
  let afterStar = 0;
  for (let i = 0; i < name.length; ) {
    const current = steps[step];
    begins[step] = i;
    if (current !== undefined && current.accepts === undefined) {
      star = step++;
      afterStar = i;
    } else if (current?.accepts?.(name[i] as string)) {
      step++;
      i++;
    } else if (star >= 0) {
      step = star + 1;
      i = ++afterStar;
    } else {
      return undefined;
    }
  }
  const rest = steps.slice(step);
  if (!rest.every(({ accepts }) => accepts === undefined)) return undefined;
  return [...begins.slice(0, step), ...rest.map(() => name.length), name.length];
}
