/** A model at a glance: the picture that the page and `gguf-native inspect --picture` draw. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { type GgmlType, openSync } from "gguf-native";
import { type Coloring, modelPicture, type PictureOptions, shadeColor, svgText } from "#dist/describe/model-picture";
import { type TensorTable, tensorTable } from "#dist/describe/tensor-table";
import { at, EVIL, expectFailure, expectPicture, run } from "../support/cli";
import { sampleModel } from "../support/sample-model";
import { noPage, pages, servePage } from "../support/view-page";

/** Tensors of one weight each. */
function tableOf(names: readonly string[], bytes = (_: string) => 4, typeOf = (_: string): GgmlType => "F32") {
  const one = { shape: [1], elementCount: 1, offset: 0 };
  const list = names.map((name) => ({ ...one, name, type: typeOf(name), byteLength: bytes(name) }));
  return tensorTable(list, [...new Set(names.map(typeOf))]);
}

const draw = (table: TensorTable, options: Partial<PictureOptions> = {}): string => {
  const svg = svgText(modelPicture(table, { title: "m.gguf", ...options }));
  expectPicture(svg);
  return svg;
};

/** The names, and places and colours, of all cells. */
const cellsOf = (svg: string) =>
  Array.from(
    svg.matchAll(/<title>([^<]*)<\/title><rect x="([\d.]+)" y="([\d.]+)"([^>]*)/g),
    ([, title, x, y, more]) => ({
      ...{ title: title!, x: Number(x), y: Number(y), fill: /fill="([^"]*)"/.exec(more!)![1], more },
    }),
  );

describe("the picture of a model", () => {
  const layers = [10, 0, 2].flatMap((i) => [`blk.${i}.ffn_up.weight`, `blk.${i}.attn_q.weight`]);
  const table = tableOf(["token_embd.weight", ...layers], (name) => (name.includes("embd") ? 1e9 : 400));

  test("has layers in order across, kinds down, and apart what is outside", () => {
    const cells = cellsOf(draw(table));
    const names = cells.map(({ title }) => title.replace(/,.*/, ""));
    assert.deepEqual(names, [
      ...["attn_q", "ffn_up"].flatMap((kind) => [0, 2, 10].map((i) => `blk.${i}.${kind}.weight`)),
      "token_embd.weight",
    ]);
    const [a, b, c, d, , f, outside] = cells as [Cell, Cell, Cell, Cell, Cell, Cell, Cell];
    assert.ok(a.x < b.x && b.x < c.x && c.x < outside.x && a.y < d.y);
    assert.deepEqual([a.y, a.x, c.x], [c.y, d.x, f.x]);
  });
  test("is coloured by type, or by a number: what is outside pales no other, what is not known has no colour", () => {
    const byType = draw(tableOf(layers, undefined, (name) => (name.includes("ffn") ? "Q4_K" : "Q6_K")));
    for (const { title, fill } of cellsOf(byType))
      assert.equal(fill, shadeColor(title.includes("Q4_K") ? 0 : 1, false));
    assert.match(byType, />Q4_K 12 B<.*>Q6_K 12 B</);
    const bySize: Coloring = {
      ...{ title: "size", choose: "sum", isLogarithmic: true, textOf: (n) => `${Math.round(n)} B` },
      numberOf: (i) => (i === 3 ? undefined : i < 5 ? table.byteLengths[i] : 800),
    };
    const svg = draw(table, { coloring: bySize, isDark: true });
    const opacities = cellsOf(svg).map(({ more }) => /fill-opacity="([^"]*)"/.exec(more!)?.[1]);
    assert.deepEqual(opacities, ["0.1", "1", "0.1", undefined, "1", "0.1", "1"]);
    assert.match(svg, />400 B<.*>800 B<.*>not known</);
    draw(table, { coloring: { ...bySize, numberOf: () => undefined } });
    assert.match(
      draw(table, { coloring: { ...bySize, isLogarithmic: false, numberOf: () => 1 / 0, textOf: String } }),
      />∞<|>Infinity</,
    );
  });
  test("of hostile names has them as text", () => {
    const names = [EVIL, "</title><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "", "..", "__proto__"];
    names.push("x".repeat(9000), "漢".repeat(200), "constructor");
    const all = names.flatMap((name) => [name, `blk.0.${name}.weight`, `${name}.1.a`]);
    const svg = draw(tableOf(all), { title: names[1]! });
    assert.equal(svg.match(/<(?!\/?(svg|title|rect|text|g)\b)/g), null);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
    assert.doesNotMatch(svg, /[\0-\x1f\x7f\u2028-\u202e]/);
  });
  test("of nothing, and of very many tensors, of which none is missing", () => {
    assert.match(draw(tableOf([])), /0 tensors, 0 weights, 0 B/);
    const word = (i: number) => String.fromCharCode(97 + (i % 26), 97 + (i % 23), 97 + (i % 17));
    for (const nameOf of [
      (i: number) => `blk.${i >> 3}.t${i & 7}.weight`,
      (i: number) => `blk.0.t${i}.weight`,
      (i: number) => `blk.${i % 7}.experts.${i}.up`,
      (i: number) => `blk.${i}.${word(i)}`,
      (i: number) => `t${i}`,
      (i: number) => word(i) + i,
    ]) {
      for (const width of [1000, 326]) {
        const cells = cellsOf(draw(tableOf(Array.from({ length: 10_000 }, (_, i) => nameOf(i))), { width }));
        const counts = cells.map(({ title }) =>
          Number((/^([\d,]+) tensors,/.exec(title)?.[1] ?? "1").replace(",", "")),
        );
        assert.ok(cells.length <= 128 * 64 + 64);
        assert.equal(
          counts.reduce((a, b) => a + b, 0),
          10_000,
          nameOf(8),
        );
      }
    }
  });
});

type Cell = ReturnType<typeof cellsOf>[number];
const path = at("sample.gguf");
writeFileSync(path, sampleModel());

test("inspect --picture draws it, and replaces a file only with --force", async () => {
  const { status, stderr } = await run("inspect sample.gguf --picture model.svg");
  assert.deepEqual([status, stderr.replace(/ .*/, "")], [0, "model.svg:\n"]);
  const svg = readFileSync(at("model.svg"), "utf8");
  expectPicture(svg);
  assert.equal(cellsOf(svg).length, 20);
  writeFileSync(at("model.svg"), "mine");
  await expectFailure("inspect sample.gguf --picture model.svg", 1, /model\.svg: exists already/);
  await expectFailure("inspect sample.gguf --force --picture sample.gguf", 1, /sample\.gguf/);
  assert.equal(readFileSync(at("model.svg"), "utf8"), "mine");
  assert.equal((await run("inspect sample.gguf --force --picture model.svg")).status, 0);
  assert.equal(readFileSync(at("model.svg"), "utf8"), svg);
  await expectFailure("inspect sample.gguf sample.gguf --picture x.svg", 2, /--picture is for one model/);
});

describe("on the page", { skip: noPage, timeout: 600_000 }, () => {
  const { openChosen, open } = pages();

  test("every cell opens its tensor, by keys too; the saved picture is that of the command", async () => {
    await using view = await openChosen([path], { acceptDownloads: true });
    const links = view.page.getByTestId("model-picture").getByRole("link");
    await links.first().waitFor();
    assert.equal(await links.count(), 20);
    await run("inspect sample.gguf --picture saved.svg");
    for (const [kind, begin] of [
      ["SVG", readFileSync(at("saved.svg"), "latin1")],
      ["PNG", "\x89PNG"],
    ] as const) {
      const waiting = view.page.waitForEvent("download");
      await view.page.getByRole("button", { name: `Save as ${kind}` }).click();
      const download = await waiting;
      assert.equal(download.suggestedFilename(), `sample.gguf.${kind.toLowerCase()}`);
      assert.ok(readFileSync(await download.path(), "latin1").startsWith(begin));
    }
    await links.first().focus(); // blk.0.attn_k.weight
    for (const key of ["ArrowDown", "ArrowRight", "Enter"]) await view.page.keyboard.press(key);
    const heading = (name: string) => view.page.getByTestId("tensor").getByRole("heading", { name, exact: true });
    await heading("blk.1.attn_norm.weight").waitFor();
    await view.page.goBack();
    await links.and(view.page.getByLabel(/^token_embd.weight, /)).click();
    await heading("token_embd.weight").waitFor();
  });
  test("colours are what was measured, and with two models signal to noise", async () => {
    await using view = await open(`${await servePage([path], [path])}#summary`);
    const name = "blk.0.attn_q.weight";
    const { std, zeros, count, min, max, mean } = openSync(path).tensor(name).statsSync();
    const short = (value: number) => String(Number(value.toPrecision(4)));
    for (const [option, text] of [
      ["Deviation", `deviation ${short(std)}`],
      ["Share of zeros", `zeros ${short((100 * zeros) / count)} %`],
      ["Outliers", `farthest from the mean, in deviations ${short(Math.max(mean - min, max - mean) / std)}`],
      ["Signal to noise", "signal to noise exact"],
    ] as const) {
      await view.page.getByLabel("Colours show").selectOption(option);
      await view.page.getByRole("link", { name: new RegExp(`^${name}, Q4_K, .*, ${text}$`) }).waitFor();
    }
    await view.page.waitForURL(/#summary\?colours=snr$/);
  });
});
