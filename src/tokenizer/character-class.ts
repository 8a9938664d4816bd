/** Classes of characters. */

/** Whether a character is of a class. */
export type Class = (code: number) => boolean;

/** The class that an expression for one character describes. Its answers are kept, for 256 characters at once. */
export function classOf(expression: RegExp): Class {
  const pages: (Uint8Array | undefined)[] = Array.from({ length: 0x1100 });
  return (code) => {
    pages[code >> 8] ??= Uint8Array.from({ length: 256 }, (_, low) =>
      expression.test(String.fromCodePoint((code & ~255) | low)) ? 1 : 0,
    );
    return pages[code >> 8]?.[code & 255] === 1;
  };
}
