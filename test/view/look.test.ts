/** Looking closer at a tensor: parts of its picture, single weights and what stands in their blocks. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ggmlTypes, parse } from "gguf-native";
import type { Locator } from "playwright-core";
import { colorScale } from "../../view/lib/averages";
import { blockView, hasScales } from "../../view/lib/block-scales";
import { moved, showing, wholeOf, zoomed } from "../../view/lib/zoom";
import { gaussianBlocks } from "../support/blocks";
import { writeGguf } from "../support/gguf-writer";
import { ALL_TYPES } from "../support/golden";
import { temporaryFolder } from "../support/paths";
import { Random } from "../support/random";
import { sampleModel } from "../support/sample-model";
import { expectNothingSerious, factsOf, noPage, pageFileUrl, pages, servePage, testLooks } from "../support/view-page";
import { decode, viewSession } from "../support/view-session";

describe("the part that is shown", () => {
  const size = { rows: 100, columns: 1000 };
  const whole = wholeOf(size);
  test("is smaller around a point, and never outside", () => {
    assert.deepEqual(zoomed(whole, size, 0.5), { row: 25, column: 250, rows: 50, columns: 500 });
    assert.deepEqual(zoomed(whole, size, 0.5, 0, 1), { row: 50, column: 0, rows: 50, columns: 500 });
    assert.deepEqual(zoomed(zoomed(whole, size, 0.5, 1, 1), size, 2, 0, 0), whole);
    let region = whole;
    for (let i = 0; i < 30; i++) region = zoomed(region, size, 0.5, 1, 0);
    assert.deepEqual(region, { row: 0, column: 992, rows: 8, columns: 8 });
    assert.deepEqual(zoomed(wholeOf({ rows: 1, columns: 3 }), { rows: 1, columns: 3 }, 0.1).columns, 3);
  });
  test("moves as far as there is something, and to a weight", () => {
    const region = { row: 0, column: 0, rows: 10, columns: 10 };
    assert.deepEqual(moved(region, size, -5, 2000), { ...region, column: 990 });
    assert.deepEqual(showing(region, size, 5, 5), region);
    assert.deepEqual(showing(region, size, 50, 999), { ...region, row: 41, column: 990 });
  });
});

describe("colours", () => {
  test("have zero in the middle, and the median where nearly all are on one side of it", () => {
    const random = new Random(4);
    const gaussian = Float32Array.from({ length: 4096 }, () => random.gaussian());
    assert.equal(colorScale(gaussian).middle, 0);
    for (const sign of [1, -1]) {
      const { middle, limit } = colorScale(gaussian.map((value) => sign * (1 + value / 100)));
      assert.ok(Math.abs(middle - sign) < 0.01 && limit > 0.01 && limit < 0.06, `${middle} ${limit}`);
    }
    assert.deepEqual(colorScale(Float32Array.of(Number.NaN)), { middle: 0, limit: 0 });
    assert.deepEqual(colorScale(new Float32Array(5)), { middle: 0, limit: 0 });
  });
});

describe("a weight is its code times a scale, and a minimum", () => {
  for (const type of ALL_TYPES.filter(hasScales)) {
    test(type, () => {
      const block = gaussianBlocks(type, 1, new Random(5));
      const values = decode(type, block);
      for (let i = 0; i < ggmlTypes[type].blockSize; i += 5) {
        const { run, codes } = blockView(type, block, i, "little", decode);
        assert.ok(run !== null);
        assert.ok(Math.fround(run.scale * codes[i]! + (run.minimum ?? 0)) === values[i]);
      }
    });
  }
});

describe("the session", () => {
  const [columns, rows] = [96, 50];
  const values = Float32Array.from({ length: columns * rows }, (_, i) => i);
  const bytes = new Uint8Array(values.buffer);
  const file = writeGguf({ tensors: [{ name: "t", type: 0, shape: [columns, rows], bytes }] });
  const { ask } = viewSession({ t: file });

  test("gives a part of a picture, weight by weight, wherever it is", async () => {
    const { id } = await ask("open", { url: "t" });
    for (const region of [
      { row: 0, column: 0, rows, columns },
      { row: 3, column: 90, rows: 4, columns: 6 },
      { row: 49, column: 0, rows: 1, columns: 96 },
      { row: 10, column: 7, rows: 40, columns: 1 },
    ]) {
      const picture = await ask("picture", { model: id, tensor: 0, width: 512, height: 512, region });
      const expected = Array.from({ length: region.rows }, (_, r) =>
        values.slice((region.row + r) * columns + region.column).slice(0, region.columns),
      ).flatMap((row) => [...row]);
      assert.deepEqual([...picture.means], expected);
    }
    const beyond = { row: 2 ** 40, column: 95, rows: 2 ** 40, columns: 2 ** 40 };
    const nothing = await ask("picture", { model: id, tensor: 0, width: 8, height: 8, region: beyond });
    assert.equal(nothing.means.length, 0);
  });
  test("gives a weight, and none where there is none", async () => {
    const { id } = await ask("open", { url: "t" });
    const weight = await ask("weight", { model: id, tensor: 0, row: 2, column: 3 });
    assert.deepEqual(weight, { row: 2, column: 3, value: 2 * columns + 3, block: null });
    await assert.rejects(ask("weight", { model: id, tensor: 0, row: 50, column: 0 }), /no such weight/);
    await assert.rejects(ask("weight", { model: id, tensor: 0, row: 0, column: 96 }), /no such weight/);
  });
});

describe("on the page", { skip: noPage, timeout: 600_000 }, () => {
  const folder = temporaryFolder();
  const content = sampleModel();
  const path = join(folder, "sample.gguf");
  writeFileSync(path, content);
  const norm = join(folder, "norm.gguf");
  const random = new Random(6);
  const ones = Float32Array.from({ length: 4096 }, () => 1 + random.gaussian() / 50);
  writeFileSync(
    norm,
    writeGguf({
      tensors: [{ name: "norm", type: 0, shape: [4096], bytes: new Uint8Array(ones.buffer) }],
    }),
  );
  const name = "blk.0.attn_q.weight";
  const tensor = parse(content).tensor(name);
  const [columns = 0] = tensor.shape;

  const { open, openServed } = pages();

  for (const [where, url] of [
    ["from a disk", () => pageFileUrl],
    ["over the local server", () => servePage([path])],
  ] as const) {
    test(`by keys, ${where}`, async () => {
      await using view = await open(await url());
      if (where === "from a disk") await view.choose(path);
      else await view.opened();
      const region = await view.tensor(name);
      await region.getByTestId("heatmap").waitFor();
      await region.getByTestId("closer").focus();
      const { keyboard } = view.page;
      for (let i = 0; i < 10; i++) await keyboard.press("+");
      await region.getByText("rows 252 to 259, columns 252 to 259").waitFor();
      await region.getByRole("img", { name: /^Values: 8 rows of 8 columns; colours/ }).waitFor();
      await keyboard.press("Enter");
      for (const key of ["ArrowDown", "ArrowRight", "ArrowRight"]) await keyboard.press(key);
      const [row, column] = [257, 258];
      await region.getByTestId("weight").getByText(String(column), { exact: true }).waitFor();
      const facts = await factsOf(region.getByTestId("weight"));
      const element = row * columns + column;
      const values = tensor.dequantizeSync();
      assert.equal(Math.fround(Number(facts.Value)), values[element]);
      assert.equal(facts.Row, String(row));
      assert.equal(facts.Block, `${element >> 8}, weight ${element & 255} of 256`);
      const [scale, minimum] = [facts["Scale of these 32"], facts["Minimum of these 32"]].map(Number);
      const made = scale! * Number(facts.Code) + minimum!;
      assert.ok(Math.abs(made - values[element]!) < 1e-6, `${made}`);
      const codes = region.getByTestId("codes").locator("> *");
      assert.equal(await codes.count(), 256);
      const isMark = (code: { tagName: string }) => code.tagName === "MARK";
      assert.ok(await codes.nth(element & 255).evaluate(isMark));
      assert.equal(await region.getByTestId("codes").locator("mark").textContent(), facts.Code);
      await keyboard.press("Escape");
      await region.getByTestId("weight").waitFor({ state: "detached" });
      await keyboard.press("0");
      await region.getByText("all rows and columns").waitFor();
    });
  }

  test("by wheel and by a click, while the page stays where it is", async () => {
    await using view = await openServed([[path]]);
    const region = await view.tensor(name);
    const map = region.getByTestId("heatmap");
    await map.waitFor();
    await map.scrollIntoViewIfNeeded();
    const box = (await map.boundingBox())!;
    await view.page.mouse.move(box.x + 2, box.y + 2);
    for (let i = 0; i < 8; i++) await view.page.mouse.wheel(0, -200);
    await region.getByRole("img", { name: /^Values: 8 rows of 8 columns/ }).waitFor();
    const text = (await region.getByTestId("region").textContent())!;
    const [, row, column] = /^rows (\d+) to \d+, columns (\d+) to/.exec(text)!;
    assert.ok(Number(row) < 8 && Number(column) < 8, text);
    assert.deepEqual((await map.boundingBox())!.y, box.y);
    await view.page.mouse.click(box.x + box.width * 0.44, box.y + 2);
    const facts = await factsOf(region.getByTestId("weight"));
    assert.deepEqual([facts.Row, facts.Column], [row, String(Number(column) + 3)]);
  });

  test("two fingers bring it closer, where the page stays, and a value is copied", async () => {
    const permissions = ["clipboard-read", "clipboard-write"];
    await using view = await openServed([[path]], { hasTouch: true, permissions });
    const region = await view.tensor(name);
    const map = region.getByTestId("heatmap");
    await map.scrollIntoViewIfNeeded();
    const { x, y, width, height } = (await map.boundingBox())!;
    const session = await view.page.context().newCDPSession(view.page);
    const touch = (type: "touchStart" | "touchMove" | "touchEnd", ...shares: number[]) =>
      session.send("Input.dispatchTouchEvent", {
        type,
        touchPoints: shares.map((share, id) => ({ x: x + share * width, y: y + height * share, id })),
      });
    await touch("touchStart", 0.45, 0.55);
    for (const half of [0.1, 0.2, 0.4]) await touch("touchMove", 0.5 - half, 0.5 + half);
    await touch("touchEnd");
    await region.getByText("rows 224 to 287, columns 224 to 287").waitFor();
    assert.equal((await map.boundingBox())!.y, y);
    await region.getByTestId("closer").press("Enter");
    await region.getByRole("button", { name: "Copy value", exact: true }).click();
    await region.getByRole("button", { name: "Copied" }).waitFor();
    const { Value } = await factsOf(region.getByTestId("weight"));
    assert.equal(await view.page.evaluate("navigator.clipboard.readText()"), Value);
  });

  test("pointed at and clicked: all of it is said, and in sight at 1440 x 900", async () => {
    await using view = await openServed([[path]], { viewport: { width: 1440, height: 900 } });
    const region = await view.tensor(name);
    const map = region.getByTestId("heatmap");
    const boxOf = async (part: Locator) => (await part.boundingBox())!;
    await region.getByTestId("stats").waitFor();
    const { x, y, width } = await boxOf(map);
    assert.ok((await boxOf(region.getByTestId("histogram"))).y < y && (await boxOf(region.getByTestId("stats"))).y < y);
    await view.page.mouse.move(x + width / 2, y + 20);
    const tip = region.getByTestId("tip");
    await tip.getByText(/^block \d+, code \d+$/).waitFor();
    const [value, block, ...others] = (await tip.innerText()).split("\n");
    const [, row, column] = /^row ([\d,]+), column ([\d,]+)$/.exec(others.at(-1)!)!.map(Number) as [
      number,
      number,
      number,
    ];
    const element = row * columns + column;
    assert.equal(Math.fround(Number(value)), tensor.dequantizeSync()[element]);
    assert.ok(block!.startsWith(`block ${element >> 8},`));
    await view.page.mouse.click(x + width / 2, y + 20);
    for (const part of ["weight", "codes"]) {
      const box = await boxOf(region.getByTestId(part));
      assert.ok(box.y >= 0 && box.y + box.height <= 900 && box.x + box.width <= 1440, `${part} ${JSON.stringify(box)}`);
    }
  });

  test("weights around 1 have a scale of their own, which the caption explains", async () => {
    await using view = await openServed([[norm]]);
    const region = await view.tensor("norm");
    const label = (await region.getByTestId("heatmap").getAttribute("aria-label"))!;
    assert.match(label, /colours from 0\.9\d+ to 1\.0\d+; the middle colour is the median, (1|0\.99|1\.00)/);
  });

  test("a picture is saved as PNG, the histogram as SVG", async () => {
    await using view = await openServed([[path]], { acceptDownloads: true });
    const region = await view.tensor(name);
    for (const [button, file, begin] of [
      ["Save as PNG", `${name}.png`, "\x89PNG"],
      ["Save as SVG", "histogram.svg", "<svg "],
    ] as const) {
      const waiting = view.page.waitForEvent("download");
      await region.getByRole("button", { name: button }).click();
      const download = await waiting;
      assert.equal(download.suggestedFilename(), file);
      assert.equal(readFileSync(await download.path()).toString("latin1", 0, begin.length), begin);
    }
  });

  testLooks("axe finds nothing serious", async (options) => {
    await using view = await openServed([[path]], options);
    const region = await view.tensor(name);
    await region.getByTestId("heatmap").waitFor();
    await region.getByTestId("closer").focus();
    for (const key of ["+", "+", "Enter"]) await view.page.keyboard.press(key);
    await region.getByTestId("weight").waitFor();
    await view.idle();
    await expectNothingSerious(view, "looking closer");
  });
});
