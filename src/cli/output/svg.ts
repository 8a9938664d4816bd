/** Pieces of SVG pictures. Text is in a font of one width, so that it is known to fit. */
import { escapeXml } from "../../describe/text";
import { textWidth, truncate } from "./text-width";

const FONT_SIZE = 13;

/** What a character takes at most: six tenths of the height in all common fonts of one width. */
const CHARACTER = 0.62 * FONT_SIZE;

/** The width of text. */
export function labelWidth(text: string): number {
  return textWidth(text) * CHARACTER;
}

/** Text (already escaped for terminals), cut to the room that it has. */
export function textAt(
  x: number,
  y: number,
  anchor: "start" | "middle" | "end",
  text: string,
  room = Number.POSITIVE_INFINITY,
  fill = "#222",
): string {
  const shown = truncate(text, Math.floor(room / CHARACTER));
  const place = `x="${x.toFixed(2)}" y="${y.toFixed(2)}" text-anchor="${anchor}"`;
  const whole = shown === text ? "" : `<title>${escapeXml(text)}</title>`;
  return `<text ${place} fill="${fill}">${whole}${escapeXml(shown)}</text>`;
}

/** A picture with its title at the top. */
export function document(title: string, width: number, height: number, content: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="monospace" font-size="${FONT_SIZE}">`,
    `<title>${escapeXml(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    textAt(width / 2, 28, "middle", title, width - 20),
    ...content,
    "</svg>\n",
  ].join("\n");
}
