/** How wide text is where all characters have one width, or two. */

const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const WIDE =
  /^[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]$/u;

/** Terminal columns that a character takes. */
export function charWidth(char: string): number {
  if (char < "\u0300") return 1;
  return ZERO_WIDTH.test(char) ? 0 : WIDE.test(char) ? 2 : 1;
}

/** Text of which each character takes one column. */
const NARROW = /^[ -~]*$/;

/** Terminal columns that `text` takes. */
export function textWidth(text: string): number {
  if (NARROW.test(text)) return text.length;
  let width = 0;
  for (const char of text) width += charWidth(char);
  return width;
}

/** `text` cut to `width` columns, an ellipsis at the end where something was cut off. */
export function truncate(text: string, width: number): string {
  if (text.length <= width && textWidth(text) <= width) return text;
  let result = "";
  let left = width - 1;
  for (const char of text) {
    left -= charWidth(char);
    if (left < 0) break;
    result += char;
  }
  return `${result}…`;
}
