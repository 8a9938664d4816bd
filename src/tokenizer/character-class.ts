/** Classes of characters. */

/** Whether a character is of a class. */
export type Class = (code: number) => boolean;

/**
 * The class that a regular expression for one character describes. Its answers are kept, for 256 characters at once. Most classes are
 * made and never asked: they have no memory until then, and no expression, whose sets of characters take long to make.
 */
export function classOf(source: string): Class {
  let expression: RegExp;
  let pages: (Uint8Array | undefined)[] | undefined;
  return (code) => {
    if (pages === undefined) {
      expression = new RegExp(source, "u");
      pages = new Array(0x1100);
    }
    pages[code >> 8] ??= Uint8Array.from({ length: 256 }, (_, low) =>
      expression.test(String.fromCodePoint((code & ~255) | low)) ? 1 : 0,
    );
    return pages[code >> 8]?.[code & 255] === 1;
  };
}
