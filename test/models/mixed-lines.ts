/** Lines of all sorts, for tokenizers to stumble over. */
import { Random } from "../support/random";

const words = (text: string): string[] => text.split(" ");

/** What lines are made of. */
const PARTS = [
  ..."abcxyzABZ0129 .,;:!?'\"-_()[]{}<>/\\|@#$%^&*+=~`\t\n\r",
  ...["\r\n", "\n\n", "\n\n\n", " \n", "  ", "   ", "        ", "\u00a0", "\u2003", "\u3000", "\u0085", "\u200b"],
  ...[" The", " quick", " function", "e\u0301", "\u00ad", "\u0301", "\u007f", "\u0001", "\ufffd"],
  ...words("'s 'LL 'Ve don't I'm we'RE \u2019s ... !!! -- == :// 0x 1,234.5"),
  ...words("the brown Fox HTTPServer camelCase snake_case return; 1 12 123 1234 12345678 ½ ² ٣٤ 四 Ⅷ"),
  ...words("é ü ñ Å ß ﬁ İ ı Ж привет Ελλάδα שלום مرحبا नमस्ते สวัสดี ქართული"),
  ...words("漢字 ひらがな カタカナ 한국어 中文，句。 「引用」 ～ ！ 𠀀 㐀"),
  ...words("🦙 👩‍👩‍👧 🇩🇪 ❤️ € £ → ∑ © \u{1d49c} \u{10ffff}"),
];

/** `count` lines, always the same ones. */
export function mixedLines(count: number, seed = 1): string[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () =>
    Array.from({ length: 1 + random.below(24) }, () => PARTS[random.below(PARTS.length)]).join(""),
  );
}
