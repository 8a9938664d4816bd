// Appended to the recipe: the tokens.
import assert from "node:assert/strict";

assert.deepEqual(
  ids.map((id) => tokens[id]),
  ["hello", "Ġworld"],
);
for (const text of ["hello world", "<|end|> hell", "Größe 漢字 🌍\n", "  hellohello"]) {
  const encoded = tokenizer.encode(text);
  assert.equal(tokenizer.decode(encoded.ids, { skip_special_tokens: false }), text);
}
assert.ok(tokenizer.encode("x<|end|>").ids.includes(tokens.indexOf("<|end|>")));
console.log("checked");
