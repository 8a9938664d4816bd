/** src/tokenizer: the tokens that llama.cpp makes, and the text back. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type GgufMetadata, openSync, parse } from "gguf-native";
import { type Normalization, Tokenizer } from "gguf-native/tokenizer";
import { Word } from "#dist/tokenizer/encoding";
import { wordRule, wordRuleNames, words } from "#dist/tokenizer/word-rules";
import { emulated } from "../support/emulated";
import { arr, bool, str, type TypedValue, u32, writeGguf } from "../support/gguf-writer";
import { Random } from "../support/random";
import { needsShared, sharedPath, tinyLlama } from "../support/shared-data";

/** What llama.cpp 0.5.0 makes of some texts, without the token that begins a text. */
const LLAMA_CPP: Record<string, Record<string, number[]>> = {
  [tinyLlama]: {
    "": [],
    "Hello world, this is": [15043, 3186, 29892, 445, 338],
    "  two  spaces": [259, 1023, 29871, 8162],
    " leading": [29871, 8236],
    "trailing ": [25053, 29871],
    "tab\tnew\nline": [4434, 12, 1482, 13, 1220],
    "🦙 llama naïve 漢字": [29871, 243, 162, 169, 156, 11148, 3304, 1055, 30085, 345, 29871, 31652, 30578],
    "The quick brown fox jumps over the lazy dog.": [
      450, 4996, 17354, 1701, 29916, 432, 17204, 975, 278, 17366, 11203, 29889,
    ],
    "1234567 and 3.14": [
      29871, 29896, 29906, 29941, 29946, 29945, 29953, 29955, 322, 29871, 29941, 29889, 29896, 29946,
    ],
    "</s> text": [1533, 29879, 29958, 1426],
    "don't You'LL": [1016, 29915, 29873, 887, 29915, 2208],
  },
  "ggml-vocab-gpt-2.gguf": {
    "": [],
    "Hello world, this is": [15496, 995, 11, 428, 318],
    "  two  spaces": [220, 734, 220, 9029],
    " leading": [3756],
    "trailing ": [9535, 4386, 220],
    "tab\tnew\nline": [8658, 197, 3605, 198, 1370],
    "🦙 llama naïve 漢字": [8582, 99, 247, 32660, 1689, 41492, 10545, 120, 95, 27764, 245],
    "The quick brown fox jumps over the lazy dog.": [464, 2068, 7586, 21831, 18045, 625, 262, 16931, 3290, 13],
    "1234567 and 3.14": [10163, 2231, 3134, 290, 513, 13, 1415],
    "don't You'LL\n\n x": [9099, 470, 921, 6, 3069, 628, 2124],
  },
};

const bertVocabulary = "ggml-vocab-bert-bge.gguf";

/** What the library tokenizers 0.23.3 makes of texts with the same vocabulary, without the tokens at both ends. */
const OWN_TOKENIZER: Record<string, number[]> = {
  "한국어 각": [1469, 30006, 30021, 29991, 30014, 30020, 29999, 30008, 1455, 30006, 30020],
  "हिन्दी की": [1339, 29877, 29863, 29861, 29878, 1315, 29878],
  "ΟΔΟΣ İstanbul": [1169, 29722, 29730, 29733, 9960],
  "e\u0301tude A\u030a கொ": [3802, 12672, 1037, 100],
  "a\0b\vc\ufffdd\x85e\u200df\u2028g": [5925, 3207, 2546, 1043],
  // Marks and punctuation that came after Unicode 8, and a symbol that was punctuation then.
  "x\u0aff\u0c04y a\u2e44b a\u166db": [100, 100, 1037, 100, 1038],
  豈漢㐀字: [100, 1904, 100, 100],
  [`${"a".repeat(100)} ${"a".repeat(101)}`]: [13360, ...Array(48).fill(11057), 2050, 100],
  "[SEP] [mask] [MASK]x": [102, 1031, 7308, 1033, 103, 1060],
  "▁a a▁b": [100, 100],
};

type Keys = Record<string, string | boolean | number | readonly string[] | readonly number[]>;

/** The names of tokens for bytes. */
const bytes = Array.from({ length: 256 }, (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, "0")}>`);
/** Those of all bytes are among them. */
const characters = Array.from({ length: 0x144 - 0x21 }, (_, i) => String.fromCharCode(0x21 + i));

/** A tokenizer of a file, or its metadata, with these keys of "tokenizer.ggml", and others. */
function tokenizerOf(keys: Keys, ...others: [string, TypedValue][]): Tokenizer {
  return new Tokenizer(metadataOf(keys, ...others));
}

function metadataOf(keys: Keys, ...others: [string, TypedValue][]): GgufMetadata {
  const typed = (name: string, value: Keys[string]): TypedValue => {
    if (typeof value === "string") return str(value);
    if (typeof value === "boolean") return bool(value);
    if (typeof value === "number") return u32(value);
    return arr(name === "scores" ? "float32" : name === "token_type" ? "int32" : "string", value);
  };
  const own = Object.entries(keys).map(([name, value]) => [`tokenizer.ggml.${name}`, typed(name, value)] as const);
  return parse(writeGguf({ metadata: [...own, ...others] })).metadata;
}

test("with the model's normalization, tokens are those of its own tokenizer", needsShared(bertVocabulary), () => {
  using file = openSync(sharedPath(bertVocabulary));
  const tokenizer = new Tokenizer(file.metadata, { normalization: "model" });
  for (const [text, expected] of Object.entries(OWN_TOKENIZER)) {
    const ids = tokenizer.encode(text, { special: true, bos: false, eos: false });
    assert.deepEqual([...ids], expected, text);
  }
});

function decode(tokenizer: Tokenizer, tokens: readonly number[]): string {
  const next = tokenizer.decoder();
  return tokens.map((id) => next(id)).join("") + next();
}

for (const [name, texts] of Object.entries(LLAMA_CPP)) {
  describe(name, needsShared(name), () => {
    for (const [text, expected] of Object.entries(texts)) {
      test(JSON.stringify(text), () => {
        using file = openSync(sharedPath(name));
        const tokenizer = new Tokenizer(file.metadata);
        const begin = name === tinyLlama ? [1] : [];
        assert.deepEqual([...tokenizer.encode(text)], [...begin, ...expected]);
        assert.equal(decode(tokenizer, [...tokenizer.encode(text)]), text);
        assert.equal(tokenizer.decode(tokenizer.encode(text)), text);
      });
    }
  });
}

describe("a vocabulary of the kind llama", () => {
  const pieces = ["<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁a", "▁ab", "aba"];
  const scores = [0, 0, 0, -1, -1, -1, -2, -3, -4, -9];
  const tokenizer = (keys: Keys = {}): Tokenizer =>
    tokenizerOf({
      ...{ model: "llama", tokens: pieces, scores, token_type: [2, 3, 3, 1, 1, 1, 1, 1, 1, 1] },
      ...{ bos_token_id: 1, eos_token_id: 2, ...keys },
    });

  test("joins what scores highest first, not what is longest", () => {
    // "aba" is a piece, but "ab" is made first, then "▁ab"; the last "a" is left.
    assert.deepEqual([...tokenizer().encode("aba")], [1, 8, 4]);
  });
  test("has no space before the text if the file says so", () => {
    assert.deepEqual([...tokenizer({ add_space_prefix: false }).encode("ab")], [1, 6]);
  });
  test("adds no start token if the file says so", () => {
    assert.deepEqual([...tokenizer({ add_bos_token: false }).encode("ab")], [8]);
  });
  test("without bytes has an unknown token for each", () => {
    assert.deepEqual([...tokenizer().encode("aé")], [1, 7, 0, 0]);
  });
  test("knows its end, and that control tokens have no text", () => {
    const ends = [1, 2, 3].map((token) => tokenizer().isEnd(token));
    assert.deepEqual(ends, [false, true, false]);
    assert.equal(decode(tokenizer(), [1, 8, 2, 0, 5]), "abb");
  });
});

describe("tokens of their own", () => {
  /** Types: 1 is normal, 3 control, 4 user-defined. */
  const tokenizer = (
    tokens: [text: string, type: number][],
    prefix: boolean,
    ...others: [string, TypedValue][]
  ): Tokenizer => {
    const [texts, types] = [tokens.map(([text]) => text), tokens.map(([, type]) => type)];
    const keys = { model: "llama", tokens: texts, scores: tokens.map(() => -1), token_type: types };
    return tokenizerOf({ ...keys, add_bos_token: false, add_space_prefix: prefix }, ...others);
  };
  const tokens: [string, number][] = [
    ...["▁", "a", "b", "<", "i", ">", "\n"].map((text): [string, number] => [text, 1]),
    ["<i>", 4],
    ["\n\n", 4],
    ["\n\n\n", 4],
    ["<b>", 3],
    ["<|im_end|>", 3],
  ];

  test("user-defined ones are found before anything is joined, the longest first; control tokens are not", () => {
    const encode = (text: string): number[] => [...tokenizer(tokens, false).encode(text)];
    assert.deepEqual(encode("a<i>b"), [1, 7, 2]);
    assert.deepEqual(encode("<i><i>"), [7, 7]);
    assert.deepEqual(encode("a\n\n\n\n\n\nb"), [1, 9, 9, 2]);
    assert.deepEqual(encode("\n\n\n\n"), [9, 6]);
    assert.deepEqual(encode("\n\na\n"), [8, 1, 6]);
    assert.deepEqual(encode("<b>"), [3, 2, 5]);
    assert.deepEqual(encode(""), []);
  });
  test("the text after one begins with a space, as at the beginning, and it is text itself", () => {
    const spaced = tokenizer(tokens, true);
    assert.deepEqual([...spaced.encode("a<i>b")], [0, 1, 7, 0, 2]);
    assert.equal(decode(spaced, [1, 7, 10, 2]), "a<i>b");
  });
  test("white space after one belongs to it in Phi 3, but for some", () => {
    const names = [...tokens, ["<s>", 3], ["<unk>", 2], ["<|endoftext|>", 3]] as [string, number][];
    for (const [name, takesSpace] of [
      ["Phi-3 mini", true],
      ["my phi3", true],
      ["Phi-4", false],
    ] as const) {
      const phi = tokenizer(names, false, ["general.name", str(name)]);
      const encode = (text: string): number[] => [...phi.encode(text, { special: true })];
      // There is no token for \t.
      assert.deepEqual(encode("<b> \n\t a"), takesSpace ? [10, 1] : [10, 0, 6, 0, 0, 1]);
      assert.deepEqual(encode(" <b>"), [0, 10]);
      assert.deepEqual(encode("<s> <unk> <|endoftext|> a"), [12, 0, 13, 0, 14, 0, 1]);
    }
  });
  test("<|end|> ends a text, but beside <|return|> and <|call|> only a part of it", () => {
    const isEnd = (...names: string[]): boolean[] => {
      const tokens = names.map((name): [string, number] => [name, 3]);
      const named = tokenizer(tokens, false);
      return names.map((_, id) => named.isEnd(id));
    };
    assert.deepEqual(isEnd("<|end|>"), [true]);
    assert.deepEqual(isEnd("<|end|>", "<|return|>"), [true, true]);
    assert.deepEqual(isEnd("<|end|>", "<|call|>"), [true, true]);
    assert.deepEqual(isEnd("<|end|>", "<|return|>", "<|call|>"), [false, true, true]);
  });
  test("control tokens of well-known names end a text without a key that says so", () => {
    const ends = tokens.flatMap((_, id) => (tokenizer(tokens, false).isEnd(id) ? [id] : []));
    assert.deepEqual(ends, [11]);
  });
});

describe("a vocabulary of the kind gpt2", () => {
  /** With the characters of all bytes as tokens, and `more`; without merges. */
  const tokenizer = (pre: string, more: string[] = [], type = 1): Tokenizer => {
    const types = [...characters.map(() => 1), ...more.map(() => type)];
    return tokenizerOf({ model: "gpt2", pre, tokens: [...characters, ...more], merges: [], token_type: types });
  };
  test("tokens that a user added and control tokens are their own text, not characters for bytes", () => {
    for (const [type, options] of [
      [4, {}],
      [3, { special: true }],
    ] as const) {
      const added = tokenizer("gpt-2", ["õ", "<｜é▁｜>"], type);
      const ids = added.encode("saõ<｜é▁｜>", { special: true });
      assert.equal(ids.length, 4);
      assert.equal(added.decode(ids, options), "saõ<｜é▁｜>");
    }
    assert.equal(tokenizer("gpt-2").decode(tokenizer("gpt-2").encode("õ")), "õ");
  });
  test("cuts numbers as the file's rule does", () => {
    assert.deepEqual(words("a 12345", wordRule("gpt-2")), ["a", " 12345"]);
    assert.deepEqual(words("a 123", wordRule("smollm")), ["a", " ", "1", "2", "3"]);
    assert.deepEqual(words("a 12345", wordRule("llama-bpe")), ["a", " ", "123", "45"]);
    assert.deepEqual(words("a 123!\n", wordRule("qwen2")), ["a", " ", "1", "2", "3", "!\n"]);
  });
  test("cuts contractions and line ends as the file's rule does", () => {
    assert.deepEqual(words("a'LL\n\nb", wordRule("gpt-2")), ["a", "'", "LL", "\n", "\n", "b"]);
    assert.deepEqual(words("a'LL\n\nb", wordRule("llama-bpe")), ["a", "'LL", "\n\n", "b"]);
  });
  test("leaves a word whole that is a token, for llama-bpe only", () => {
    assert.equal(tokenizer("llama-bpe", ["abc"]).encode("abc").length, 1);
    assert.equal(tokenizer("gpt-2", ["abc"]).encode("abc").length, 3);
  });
  test("merges that are no two symbols mean nothing", () => {
    const merges = ["", " ", "a", " b", "a ", "a b b", "a b", "ab a"];
    const tokenizer = tokenizerOf({ model: "gpt2", tokens: ["a", "b", "ab", "aba"], merges });
    assert.deepEqual([...tokenizer.encode("aba")], [3]);
  });
  test("composes characters with the model's normalization, where its own tokenizer does", () => {
    for (const [pre, count] of [
      ["qwen2", 2],
      ["qwen35", 2],
      ["llama-bpe", 3],
    ] as const) {
      const metadata = metadataOf({ model: "gpt2", pre, tokens: characters, merges: [] });
      assert.equal(new Tokenizer(metadata, { normalization: "model" }).encode("e\u0301").length, count);
      assert.equal(new Tokenizer(metadata).encode("e\u0301").length, 3);
    }
  });
  test("rejects an unknown rule", () => {
    const code = "ERR_GGUF_UNSUPPORTED_TYPE";
    assert.throws(() => tokenizer("new"), { code, message: /by the rule 'new', .* known are gpt-2, phi-2/ });
    assert.throws(() => tokenizer("constructor"), { code, message: /'constructor'/ });
  });
});

describe("a vocabulary of the kind bert", () => {
  const special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"];
  const pieces = [...special, "▁un", "aff", "able", "▁cafe", "▁!", "▁漢", "▁字", "▁a"];
  const tokenizer = (keys: Keys = {}): Tokenizer =>
    tokenizerOf({
      ...{ model: "bert", tokens: pieces, token_type: [3, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1] },
      ...{ unknown_token_id: 1, bos_token_id: 2, seperator_token_id: 3, ...keys },
    });

  test("takes the longest pieces of each word, between the two tokens that the model wants", () => {
    assert.deepEqual([...tokenizer().encode("Unaffable CAFÉ!")], [2, 4, 5, 6, 7, 8, 3]);
    assert.deepEqual([...tokenizer().encode("漢字 unaffab")], [2, 9, 10, 1, 3]);
    assert.deepEqual([...tokenizer().encode("")], [2, 3]);
    assert.deepEqual([...tokenizer().encode("a", { bos: false, eos: false })], [11]);
    // Files whose tokenizer_config.json has objects for tokens say that texts get none.
    assert.deepEqual([...tokenizer({ add_bos_token: false, add_eos_token: false }).encode("a")], [2, 11, 3]);
  });
  test("leaves out accents that are characters of their own", () => {
    assert.deepEqual([...tokenizer().encode("cafe\u0301")], [2, 7, 3]);
    const kept = tokenizer({ "normalizer.strip_accents": false });
    assert.deepEqual([...kept.encode("cafe\u0301")], [2, 1, 3]);
  });
  test("keeps case and accents where the file says so", () => {
    const cased = tokenizer({ "normalizer.lowercase": false });
    assert.deepEqual([...cased.encode("cafe Cafe café")], [2, 7, 1, 1, 3]);
  });
  test("gives the text back in lower case, without control tokens unless they are asked for", () => {
    const ids = tokenizer().encode("Unaffable café");
    assert.equal(tokenizer().decode(ids), "unaffable cafe");
    assert.equal(tokenizer().decode(ids, { special: true }), "[CLS] unaffable cafe[SEP]");
  });
  test("the model's normalization keeps capital letters where pieces have them and the file says nothing", () => {
    const unknown = { model: "bert", unknown_token_id: 0 };
    for (const [pieces, keys, expected] of [
      [["▁Été", "▁ete"], {}, [1]],
      [["[CLS]x", "▁ete"], {}, [2]],
      [["▁Été", "▁ete"], { "normalizer.lowercase": true }, [2]],
      [["##", "▁▁", "▁", "été"], { "normalizer.strip_accents": false }, [0]],
    ] as [string[], Keys, number[]][]) {
      const metadata = metadataOf({ ...unknown, tokens: ["[UNK]", ...pieces], ...keys });
      const tokenizer = new Tokenizer(metadata, { normalization: "model" });
      assert.deepEqual([...tokenizer.encode("Été", { bos: false, eos: false })], expected, pieces[0]);
    }
    const inside = metadataOf({ ...unknown, tokens: ["[UNK]", "▁a", "▁", "b", "▁b"] });
    const encode = (normalization: Normalization): number[] => [
      ...new Tokenizer(inside, { normalization }).encode("a▁b ▁", { bos: false, eos: false }),
    ];
    assert.deepEqual(encode("model"), [1, 2, 3, 0]);
    assert.deepEqual(encode("llama.cpp"), [1, 4, 2, 2]);
  });
  test("finds pieces of every length; of equal ones the last", () => {
    const tokens = ["[UNK]", "▁", "▁a", "▁ab", "▁abc", "▁abcde", "▁ab", "d", "de", "def", "defg"];
    const encode = (text: string): number[] => [
      ...tokenizerOf({ model: "bert", tokens, unknown_token_id: 0 }).encode(text, { bos: false, eos: false }),
    ];
    assert.deepEqual(encode("a ab abc abcd abcde abcdef abd abdedefdefg"), [2, 6, 4, 4, 7, 5, 0, 6, 7, 6, 8, 9, 10]);
  });
  test("a vocabulary with a huge piece takes no longer", () => {
    const long = "a".repeat(100_000);
    const tokens = ["[UNK]", "▁a", "a", `a${long}`];
    const huge = tokenizerOf({ model: "bert", tokens, unknown_token_id: 0 });
    assert.equal(huge.encode(long).length, long.length);
  });
});

describe("a vocabulary of the kind t5", () => {
  /** Replaces the fullwidth a, and that with an accent after it: states of 256 numbers, one after the other. */
  const charactersMap = (): number[] => {
    const bytes = Buffer.from("\uff41\u0301");
    const nodes = new Uint32Array((bytes.length + 1) << 8);
    for (const [i, byte] of bytes.entries()) {
      const at = (i << 8) ^ byte;
      nodes[at] = ((at ^ ((i + 1) << 8)) << 10) | (i === 2 || i === 4 ? 0x100 : 0) | byte;
    }
    nodes[5 << 8] = 2; // where the second replacement is
    return [
      ...new Uint8Array(Uint32Array.of(nodes.byteLength).buffer),
      ...new Uint8Array(nodes.buffer),
      ...Buffer.from("a\0\u00e1\0"),
    ];
  };
  const pieces = ["<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁a", "á", "▁aba", "▁▁", "user"];
  const keys = {
    ...{ model: "t5", tokens: pieces, scores: [0, 0, 0, -3, -3, -3, -4, -5, -4, -12, -5, -9] },
    ...{ token_type: [2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 4], unknown_token_id: 0, eos_token_id: 2 },
  };
  const map: [string, TypedValue] = ["tokenizer.ggml.precompiled_charsmap", arr("uint8", charactersMap())];
  const tokens = (text: string, more: Keys, normalization: Normalization): string =>
    [...new Tokenizer(metadataOf({ ...keys, ...more }, map), { normalization }).encode(text)]
      .map((id) => pieces[id])
      .join(" ");

  test("has the pieces with the most score, as llama.cpp and tokenizers find them", () => {
    const merged = { add_space_prefix: true, remove_extra_whitespaces: true };
    for (const [text, more, llamaCpp, model] of [
      ["abab", {}, "ab ab </s>", "▁ ab ab </s>"],
      ["aba", merged, "▁ ab a </s>", "▁ ab a </s>"],
      ["  a  b ", merged, "▁a ▁ b </s>", "▁a ▁ b </s>"],
      ["  a  b ", { add_space_prefix: true }, "▁▁ ▁a ▁▁ b ▁ </s>", "▁a ▁ b </s>"],
      ["xyaz", {}, "<unk> a <unk> </s>", "▁ <unk> a <unk> </s>"],
      ["\uff41\u0301", {}, "á </s>", "▁a </s>"],
      ["\uff41b\0", {}, "ab <unk> </s>", "▁ ab <unk> </s>"],
      ["a▁a", {}, "a ▁a </s>", "▁a ▁a </s>"],
      ["auserb", {}, "a user b </s>", "▁a user ▁ b </s>"],
      ["", merged, "</s>", "</s>"],
      ["🦙", {}, "<unk> </s>", "▁ <unk> </s>"],
    ] as [string, Keys, string, string][]) {
      assert.equal(tokens(text, more, "llama.cpp"), llamaCpp, JSON.stringify(text));
      assert.equal(tokens(text, more, "model"), model, JSON.stringify(text));
    }
    const tokenizer = tokenizerOf({ ...keys, ...merged });
    assert.equal(tokenizer.decode(tokenizer.encode("  a ab")), "a ab");
    // Of equal pieces, the last counts.
    const lists = { scores: [...keys.scores, -3], token_type: [...keys.token_type, 1] };
    assert.deepEqual([...tokenizerOf({ ...keys, ...lists, tokens: [...pieces, "ab"] }).encode("ab")], [12, 2]);
  });
  test("needs scores, and a map of characters that is one", () => {
    assert.throws(() => tokenizerOf({ model: "t5", tokens: pieces }), /needs 'tokenizer\.ggml\.scores'/);
    for (const bytes of [[1], [4, 0, 0, 0], [3, 0, 0, 0, 1, 2, 3, 4], [0, 0, 0, 0, 1], [255, 255, 255, 255, 0]])
      assert.throws(() => tokenizerOf(keys, [map[0], arr("uint8", bytes)]), {
        ...{ code: "ERR_GGUF_INVALID", message: /precompiled_charsmap' has \d bytes/ },
      });
    const random = new Random(5);
    for (let i = 0; i < 200; i++) {
      const bytes = Array.from({ length: 1204 }, () => random.below(256));
      const hostile: [string, TypedValue] = [map[0], arr("uint8", [0xb0, 4, 0, 0, ...bytes])];
      for (const normalization of ["llama.cpp", "model"] as const)
        new Tokenizer(metadataOf(keys, hostile), { normalization }).encode("ab ä \uff41漢🦙");
    }
  });
});

describe("options and arguments", () => {
  const tokenizer = tokenizerOf({
    ...{ model: "llama", tokens: ["<unk>", "<s>", "</s>", "<|user|>", "▁", "a", "<0xC3>", "<0xA9>"] },
    ...{ scores: [0, 0, 0, 0, -1, -1, 0, 0], token_type: [2, 3, 3, 3, 1, 1, 6, 6], add_space_prefix: false },
  });

  test("control tokens in a text are found if they are asked for", () => {
    assert.deepEqual([...tokenizer.encode("a<|user|>a", { special: true })], [1, 5, 3, 5]);
    assert.ok(!tokenizer.encode("a<|user|>a").includes(3));
  });
  test("the tokens at both ends are there as asked", () => {
    assert.deepEqual([...tokenizer.encode("a", { bos: false })], [5]);
    assert.deepEqual([...tokenizer.encode("a", { eos: true })], [1, 5, 2]);
    assert.equal(tokenizer.size, 8);
  });
  test("bytes of a character come one by one, and their text once they are complete", () => {
    const ids = tokenizer.encode("é", { bos: false });
    assert.deepEqual([...ids], [6, 7]);
    const next = tokenizer.decoder();
    assert.deepEqual(Array.from(ids, next), ["", "é"]);
    assert.equal(tokenizer.decode([6]), "\ufffd");
    assert.equal(tokenizer.decode([3, 5], { special: true }), "<|user|>a");
  });
  test("half of a character is none", () => {
    assert.deepEqual([...tokenizer.encode("a\ud800", { bos: false })], [5, 0, 0, 0]);
  });
  test("wrong arguments are named", () => {
    const code = "ERR_INVALID_ARG_TYPE";
    assert.throws(() => new Tokenizer({} as never), { code, message: /metadata/ });
    for (const [normalization, message] of [
      ["none", /'llama.cpp', 'model'/],
      [1, /normalization/],
    ])
      assert.throws(() => new Tokenizer(metadataOf({ model: "bert", tokens: [] }), { normalization } as never), {
        ...{ code: "ERR_INVALID_ARG_VALUE", message },
      });
    assert.throws(() => tokenizer.encode(1 as never), { code, message: /text/ });
    assert.throws(() => tokenizer.encode("", { special: 1 as never }), { code, message: /options\.special/ });
    assert.throws(() => tokenizer.encode("", { specials: true } as never), { code: "ERR_INVALID_ARG_VALUE" });
    for (const id of ["length", "1", "constructor", null, undefined, 1n, {}] as never[]) {
      assert.throws(() => tokenizer.decode([id]), { code, message: /ids/ });
      for (const call of [() => tokenizer.bytes(id), () => tokenizer.piece(id), () => tokenizer.isEnd(id)])
        assert.throws(call, { code, message: /id/ });
      if (id !== undefined) assert.throws(() => tokenizer.decoder()(id), { code });
    }
    for (const ids of [1, "1", null, undefined, {}, new Set([1])])
      assert.throws(() => tokenizer.decode(ids as never), { code, message: /ids/ });
    assert.equal(tokenizer.piece(-1), "");
    for (const id of [8, -1, 0.5, Number.NaN])
      assert.throws(() => tokenizer.decode([id]), { code: "ERR_GGUF_RANGE", message: /there is no token/ });
  });
  test("a token that the vocabulary lacks is an error where it is asked for", () => {
    const none = tokenizerOf({ model: "gpt2", pre: "gpt-2", tokens: ["a"], merges: [] });
    const code = "ERR_GGUF_INVALID";
    assert.throws(() => none.encode("a", { bos: true }), { code, message: /no token that begins a text/ });
    assert.throws(() => none.encode("b"), { code, message: /no token for 'b'/ });
  });
});

test("a vocabulary of the kind rwkv finds the longest piece, of bytes that are written as Python writes them", () => {
  const tokens = ["<s>", "\\xe4", "\\xb8\\xad", "a", "a\\n", "\\\\", "\\'", "a\\nbc", "q\\x4", "r\\", "s\\x"];
  const tokenizer = tokenizerOf({ model: "rwkv", tokens, token_type: tokens.map((_, id) => (id === 0 ? 3 : 1)) });
  const text = "中a\n\\'<s>";
  assert.deepEqual([...tokenizer.encode(text)], [1, 2, 4, 5, 6, 0]);
  assert.equal(tokenizer.decode(tokenizer.encode(text.slice(0, 5))), text.slice(0, 5));
  // Escapes at the end that are not complete are nothing, and beyond "a\nb" there is no piece.
  assert.deepEqual([...tokenizer.encode("qrs")], [8, 9, 10]);
  assert.deepEqual([...tokenizer.encode("a\na")], [4, 3]);
  assert.throws(() => tokenizer.encode("ab"), { code: "ERR_GGUF_INVALID", message: /for a byte of the text, 98/ });
});

describe("a vocabulary of the kind plamo2", () => {
  const tokens = [...bytes, "a", "b", "ab", "aba", "🦙", "c", "d"];
  const keys = { model: "plamo2", token_type: tokens.map((_, id) => (id < 256 ? 6 : 1)), tokens };
  const scores = [...bytes.map(() => 0), -1, -1, -2, -1.5, -3, -2000, Number.POSITIVE_INFINITY];
  test("takes the way with the most score, of equal ones the longest piece, and else bytes", () => {
    const tokenizer = tokenizerOf({ ...keys, scores });
    assert.deepEqual([...tokenizer.encode("abab")], [259, 257]);
    assert.deepEqual([...tokenizer.encode("ab🦙")], [258, 260]);
    assert.deepEqual([...tokenizer.encode("\ufeffcdé")], [99, 100, 0xc3, 0xa9]);
    assert.equal(tokenizer.decode(tokenizer.encode("ab🦙é\u2581")), "ab🦙é\u2581");
  });
  test("without a byte, or scores, is rejected", () => {
    assert.throws(() => tokenizerOf({ ...keys, scores, tokens: ["x", ...tokens.slice(1)] }), /for the byte 0/);
    assert.throws(() => tokenizerOf(keys), /needs 'tokenizer.ggml.scores'/);
  });
});

test("vocabularies of other kinds are rejected", () => {
  const unknown = { code: "ERR_GGUF_UNSUPPORTED_TYPE", message: /kind 'wpm', and known are llama, gpt2, bert/ };
  assert.throws(() => tokenizerOf({ model: "wpm", tokens: ["a"] }), unknown);
  const none = { code: "ERR_GGUF_INVALID", message: /needs 'tokenizer.ggml.tokens'/ };
  assert.throws(() => tokenizerOf({}), none);
});

/** Vocabularies of every kind that have all bytes, or letters, and a few more. */
const everyKind: readonly Tokenizer[] = ["llama", "gpt2", "gemma4", "bert", "t5"].map((model) => {
  const words = ["<s>", "▁", ..."▁the the aa ▁a ▁aa aaaa 中 中中".split(" "), "\ufeff", "▁\ufeff", "ä\u0301"];
  const tokens = [...words, ...(model === "gpt2" ? [] : bytes), ...characters];
  return tokenizerOf({
    ...{ model, pre: "llama-bpe", tokens, scores: tokens.map((_, id) => -id) },
    token_type: tokens.map((_, id) => (id === 0 ? 3 : id === 12 ? 4 : 1)),
    ...{ merges: ["a a", "aa aa", "t h", "th e"], bos_token_id: 0, eos_token_id: 0, seperator_token_id: 0 },
  });
});

const ownUnigram = new Tokenizer(
  metadataOf(
    { model: "t5", tokens: ["<unk>", "</s>", "▁", "a"], scores: [0, 0, -1, -1], eos_token_id: 1 },
    // Nothing is replaced, but every grapheme is looked for.
    ["tokenizer.ggml.precompiled_charsmap", arr("uint8", [4, 0, 0, 0, 0, 0, 0, 0, 0])],
  ),
  { normalization: "model" },
);

test("U+FEFF at the beginning stays", () => {
  for (const [i, tokenizer] of everyKind.entries()) {
    const text = "\ufeffa\ufeff";
    const ids = [...tokenizer.encode(text)];
    // BERT's texts have no characters of formats; its tokens may.
    const expected = i === 3 ? "a" : text;
    assert.equal(tokenizer.decode(ids), expected);
    assert.equal(decode(tokenizer, ids), expected);
    if (i !== 1) assert.equal(tokenizer.decode([10]), "\ufeff");
    if (i !== 1) assert.equal(tokenizer.decode([11, 10]), i === 2 ? " \ufeff\ufeff" : "\ufeff\ufeff");
  }
});

test("what a decoder returns, joined, is what decode returns", () => {
  const random = new Random(7);
  for (const tokenizer of everyKind) {
    // One decoder for all texts: a call without a token begins the next text.
    for (const options of [{}, { special: true }]) {
      const next = tokenizer.decoder(options);
      for (let i = 0; i < 500; i++) {
        const ids = Array.from({ length: random.below(12) }, () => random.below(tokenizer.size));
        const text = ids.map((id) => next(id)).join("") + next();
        assert.equal(text, tokenizer.decode(ids, options), JSON.stringify(ids));
      }
    }
  }
});

describe("long texts", () => {
  // By the square of the length they would take minutes, or more stack than there is.
  const rules = new Map(wordRuleNames.map((name) => [wordRule(name), name]));
  for (const [rule, name] of rules) {
    test(`rule ${name}`, () => {
      for (const part of [..."aA1 \n中🦙\u0301!'é", "\r\n", " \n", "a ", "中A"]) {
        const text = part.repeat(2 ** 16 / part.length);
        assert.equal(words(text, rule).join(""), text);
      }
    });
  }
  test("words of millions of characters", () => {
    for (const [text, rule, count] of [
      ["中".repeat(8_000_000), "llama-bpe", 1],
      ["A".repeat(10_000_000), "tekken", 1],
      [" ".repeat(5_000_000), "jais-2", 9765 + 2],
    ] as const)
      assert.equal(words(text, wordRule(rule)).length, count, rule);
  });
  test("every kind of vocabulary", () => {
    for (const part of ["a", "中", " ", "🦙"]) {
      const text = part.repeat((emulated ? 2 ** 16 : 2 ** 19) / part.length);
      for (const tokenizer of everyKind) assert.ok(tokenizer.encode(text).length > 0);
      assert.ok(ownUnigram.encode(text.slice(0, 2 ** 17)).length > 0);
    }
  });
  test("WordPiece, once its code is compiled", () => {
    const tokenizer = everyKind[3]!;
    for (let i = 0; i < 2000; i++) tokenizer.encode("the thethe aaaaaaaa".repeat(5));
    assert.equal(tokenizer.encode("a".repeat(1_000_000), { bos: false, eos: false }).length, 250_001);
  });
});

/** Joins the letters of a text by the ranks of pairs. */
function joined(text: string, rankOf: (left: string, right: string) => number | undefined): string[] {
  const texts: string[] = [];
  const number = (symbol: string): number => {
    if (!texts.includes(symbol)) texts.push(symbol);
    return texts.indexOf(symbol);
  };
  const word = new Word(text.length);
  word.addCharacters(text, number);
  const textOf = (symbol: number): string => texts[symbol]!;
  word.join({
    rank: (left, right) => rankOf(textOf(left), textOf(right)) ?? Number.POSITIVE_INFINITY,
    join: (left, right) => number(textOf(left) + textOf(right)),
  });
  return Array.from(word.symbols.subarray(0, word.count), textOf);
}

test("the lowest rank is joined first, the leftmost of equals", () => {
  const ranks: Record<string, number> = { "a a": 1, "b a": 0, "aa a": 5 };
  const join = (text: string): string[] => joined(text, (a, b) => ranks[`${a} ${b}`]);
  assert.deepEqual(join("x"), ["x"]);
  assert.deepEqual(join("aaa"), ["aaa"]);
  assert.deepEqual(join("aaba"), ["aa", "ba"]);
  assert.deepEqual(join("aaaa"), ["aa", "aa"]);
  assert.deepEqual(join(`${"b".repeat(40)}aaa`), [..."b".repeat(39), "ba", "aa"]);
});
test("pairs whose rank is no number are left alone", () => {
  for (const rank of [NaN, Infinity]) assert.equal(joined("ab", () => rank).length, 2);
});
