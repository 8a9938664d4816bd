/**
 * Globs for names of tensors and metadata keys. `*` stands for any number of characters, also none; `?` for one
 * character; `[abc]`, `[a-z]` for one of a set, `[!abc]` or `[^abc]` for one that is not in it. The character after a
 * backslash stands for itself. Nothing else is special: names are not paths, so `*` matches dots and slashes as well. A
 * bracket that is never closed stands for itself.
 */

/** Matches one character (a code point); `undefined` stands for `*`. */
type Step = ((char: string) => boolean) | undefined;

/** Whether `text` could be meant as a glob rather than as a name. */
export function isGlob(text: string): boolean {
  return /[*?[\\]/.test(text);
}

/** A function that tells whether a name matches the glob, in time proportional to the lengths of both at worst. */
export function globMatcher(glob: string): (name: string) => boolean {
  const steps = compile([...glob]);
  return (name) => matches(steps, [...name]);
}

function compile(glob: readonly string[]): Step[] {
  const steps: Step[] = [];
  /** Where the last set can end: a bracket that opens behind it is never closed, and is not looked for again. */
  const lastClose = glob.lastIndexOf("]");
  for (let i = 0; i < glob.length; i++) {
    const char = glob[i] as string;
    const close = char === "[" && i < lastClose ? closingBracket(glob, i) : -1;
    if (char === "*") steps.push(undefined);
    else if (char === "?") steps.push(() => true);
    else if (close >= 0) {
      steps.push(oneOfSet(glob.slice(i + 1, close)));
      i = close;
    } else {
      const literal = char === "\\" && i + 1 < glob.length ? glob[++i] : char;
      steps.push((found) => found === literal);
    }
  }
  return steps;
}

/** Where the set that opens at `open` ends; a bracket right at its start is one of its characters. */
function closingBracket(glob: readonly string[], open: number): number {
  const first = open + 1 + (glob[open + 1] === "!" || glob[open + 1] === "^" ? 1 : 0);
  return glob.indexOf("]", first + 1);
}

function oneOfSet(set: readonly string[]): Step {
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

/** Goes back to the last `*` only: what an earlier one matched never needs to change. */
function matches(steps: readonly Step[], name: readonly string[]): boolean {
  let step = 0;
  let star = -1;
  let afterStar = 0;
  for (let i = 0; i < name.length; ) {
    const current = steps[step];
    if (step < steps.length && current === undefined) {
      star = step++;
      afterStar = i;
    } else if (current?.(name[i] as string)) {
      step++;
      i++;
    } else if (star >= 0) {
      step = star + 1;
      i = ++afterStar;
    } else {
      return false;
    }
  }
  return steps.slice(step).every((rest) => rest === undefined);
}
