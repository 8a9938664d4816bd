/** How wide text is on a terminal. */
import type measure from "string-width" with { "resolution-mode": "import" };

/**
 * Text of which each character takes one column, without a look at tables: ASCII, Latin letters, and what tokens and this
 * program have beside these (Ġ, ▁, …, ≤).
 */
const PLAIN = /^[ -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2264\u2580-\u259f]*$/;

/**
 * What a terminal may show as one with its neighbours: accents, the two letters of a flag, colours of skin, parts of Hangul,
 * and what is invisible.
 */
const JOINING = /[\p{Mark}\p{Regional_Indicator}\p{Emoji_Modifier}\p{Script=Hangul}\p{Default_Ignorable_Code_Point}]/u;

/** Loaded when the first text comes that is not plain: that takes as long as some commands. */
let loaded: { measure: typeof measure; segmenter: Intl.Segmenter } | undefined;

function load(): NonNullable<typeof loaded> {
  loaded ??= { measure: require("string-width").default, segmenter: new Intl.Segmenter() };
  return loaded;
}

/** What a terminal shows as one: a character, or several that belong together. */
export function* clusters(text: string): Generator<string, void, undefined> {
  if (JOINING.test(text)) for (const { segment } of load().segmenter.segment(text)) yield segment;
  else yield* text;
}

/** The columns of short clusters. Measuring one takes a microsecond or two, and files may have very many names. */
const widths = new Map<string, number>();
const MOST_WIDTHS = 2 ** 14;
const SHORT = 32;

/** Columns that a cluster takes. */
export function clusterWidth(cluster: string): number {
  if (cluster.length === 1 && PLAIN.test(cluster)) return 1;
  let width = widths.get(cluster);
  if (width === undefined) {
    width = load().measure(cluster, { countAnsiEscapeCodes: true });
    if (widths.size === MOST_WIDTHS) widths.clear();
    if (cluster.length <= SHORT) widths.set(cluster, width);
  }
  return width;
}

/** Columns that `text` takes. */
export function textWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const cluster of clusters(text)) width += clusterWidth(cluster);
  return width;
}

/** `text` cut to `width` columns, an ellipsis at the end where something was cut off. */
export function truncate(text: string, width: number): string {
  if (PLAIN.test(text) && text.length <= width) return text;
  let end = 0;
  let endOfCut = 0;
  let used = 0;
  for (const cluster of clusters(text)) {
    used += clusterWidth(cluster);
    end += cluster.length;
    if (used > width) return `${text.slice(0, endOfCut)}…`;
    if (used < width) endOfCut = end;
  }
  return text;
}
