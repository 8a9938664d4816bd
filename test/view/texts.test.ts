/** What the page makes of texts: chat templates, which are run, and tokens of what is typed. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { parse } from "gguf-native";
import { Tokenizer } from "gguf-native/tokenizer";
import { type Conversation, isChatTemplate, type TemplateTask, templateTask } from "../../view/lib/chat-template";
import { textTokens } from "../../view/lib/text-tokens";
import { bundleFile } from "../support/browser";
import { arr, str, type TypedValue, u32, writeGguf } from "../support/gguf-writer";
import { projectRoot, temporaryFolder } from "../support/paths";
import { expectNothingSerious, noPage, pages, testLooks, type ViewPage } from "../support/view-page";

const folder = temporaryFolder();

const CHATML =
  "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/** The tokens of a vocabulary that has one for each byte that is visible, and some more. */
const BYTES = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i));
const VOCABULARY: [string, TypedValue][] = [
  ["tokenizer.ggml.model", str("gpt2")],
  ["tokenizer.ggml.pre", str("gpt-2")],
  // Of the bytes of the llama, and of spaces.
  ["tokenizer.ggml.tokens", arr("string", [...BYTES, "Ġ", "ð", "Ł", "¦", "Ļ", "He", "Ċ", "<|end|>"])],
  ["tokenizer.ggml.token_type", arr("int32", [...Array(101).fill(1), 3])],
  ["tokenizer.ggml.merges", arr("string", ["H e"])],
  ["tokenizer.ggml.eos_token_id", u32(101)],
];

const HOSTILE_TEXT = '<img src=x onerror="alert(1)">\u202e\u200b\0</pre><b>';

/** Templates that do not end as they should, and what is said then. */
const BAD: readonly (readonly [name: string, template: string, error: RegExp])[] = [
  ["that is none", "{% for %}", /./],
  ["that ends in the middle", "{{ messages", /./],
  ["that rejects a conversation", "{{ raise_exception('no <b>roles</b>') }}", /^no <b>roles<\/b>$/],
  ["with a long range", "{% for i in range(1000000000) %}x{% endfor %}", /^range\(.*is too long$/],
  ["with a range of small steps", "{{ range(0, 1, 1e-300) }}", /./],
  ["with a range that goes nowhere", "{{ range(0, 1, 0) }}", /is too long$/],
  [
    "that doubles a text",
    "{% set n = namespace(x='llama') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    /too much of a short conversation$/,
  ],
  [
    "that doubles a list",
    "{% set n = namespace(x=[1, 2]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    /too much of a short conversation$/,
  ],
  ["that calls itself", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", /call/i],
  ["that is nested without end", `{{ ${"(".repeat(100_000)} }}`, /call stack/i],
];

/** Each time around takes long for what it makes. */
const SLOW = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";

const plain: Conversation = { system: false, tool: false, addGenerationPrompt: true };

function metadataOf(template: string, ...more: [string, TypedValue][]) {
  const metadata: [string, TypedValue][] = [["tokenizer.chat_template", str(template)], ...more];
  return parse(writeGguf({ metadata })).metadata;
}

const taskOf = (template: string, conversation = plain, ...more: [string, TypedValue][]): TemplateTask =>
  templateTask(metadataOf(template, ...more), "tokenizer.chat_template", conversation, Date.UTC(2026, 0, 31, 13, 5));

describe("chat templates", () => {
  let render: (task: TemplateTask) => string;
  before(async () => {
    const bundled = join(folder, "render.mjs");
    const { outputFiles } = bundleFile(join(projectRoot, "view", "template", "render.ts"), projectRoot);
    writeFileSync(bundled, outputFiles[0]!.contents);
    render = ((await import(pathToFileURL(bundled).href)) as { renderTemplate: typeof render }).renderTemplate;
  });

  test("are the values of these keys", () => {
    for (const key of ["tokenizer.chat_template", "tokenizer.chat_template.tool_use"])
      assert.ok(isChatTemplate(key), key);
    for (const key of ["tokenizer.chat_templates", "tokenizer.chat_template.", "x.tokenizer.chat_template"])
      assert.ok(!isChatTemplate(key), key);
  });
  test("write the conversation", () => {
    assert.equal(
      render(taskOf(CHATML)),
      [
        "<|im_start|>user\nWhat is a llama?<|im_end|>",
        "<|im_start|>assistant\nAn animal of the Andes, and a relative of the camel.<|im_end|>",
        "<|im_start|>user\nHow tall does it grow?<|im_end|>",
        "<|im_start|>assistant\n",
      ].join("\n"),
    );
    assert.doesNotMatch(render(taskOf(CHATML, { ...plain, addGenerationPrompt: false })), /assistant\n$/);
    assert.match(render(taskOf(CHATML, { ...plain, system: true })), /^<\|im_start\|>system\nYou are/);
  });
  test("find tools and their calls", () => {
    const template =
      "{% if tools %}{{ tools | tojson }}{% endif %}" +
      "{% for m in messages %}{% for c in m.tool_calls or [] %}[{{ c.function.arguments.place }}]{% endfor %}{% endfor %}";
    assert.equal(render(taskOf(template)), "");
    const found = render(taskOf(template, { ...plain, tool: true }));
    assert.match(found, /^\[\{"type".*"get_weather".*\[Cusco\]$/);
  });
  test("find the special tokens of the model, and no text where it has none", () => {
    const template = "{{ bos_token }}|{{ eos_token }}|{{ pad_token is defined }}|{{ unk_token }}";
    assert.equal(render(taskOf(template)), "||false|");
    assert.equal(render(taskOf(template, plain, ...VOCABULARY)), "|<|end|>|false|");
    const llama: [string, TypedValue][] = [
      ["tokenizer.ggml.model", str("llama")],
      ["tokenizer.ggml.tokens", arr("string", ["<unk>", "<s>", "</s>"])],
      ["tokenizer.ggml.unknown_token_id", u32(0)],
      ["tokenizer.ggml.padding_token_id", u32(2)],
    ];
    assert.equal(render(taskOf(template, plain, ...llama)), "<s>|</s>|true|<unk>");
    const wrong: [string, TypedValue][] = [...llama, ["tokenizer.ggml.bos_token_id", u32(99)]];
    assert.equal(render(taskOf(template, plain, ...wrong)), "|</s>|true|<unk>");
  });
  test("know the time", () => {
    const shown = render(taskOf("{{ strftime_now('%d %b %Y, %A %B, %H:%M:%S %% %q') }}"));
    assert.equal(shown, "31 Jan 2026, Saturday January, 13:05:00 % %q");
  });
  test("are read as transformers reads them", () => {
    const actual = render(taskOf("  {% if true %}\na\n  {% endif %}\nb {{ range(1, 7, 2) | join(',') }}"));
    assert.equal(actual, "a\nb 1,3,5");
  });
  for (const [name, template, error] of BAD) {
    test(`one ${name} is an error`, () => {
      assert.throws(
        () => render(taskOf(template)),
        (thrown: Error) => error.test(thrown.message) || assert.fail(thrown.message),
      );
    });
  }
  test("one that is too long is not run", () => {
    assert.throws(() => taskOf("x".repeat((1 << 20) + 1)), /of which at most 1048576 are run/);
  });
});

describe("tokens of a text", () => {
  const tokenizer = new Tokenizer(parse(writeGguf({ metadata: VOCABULARY })).metadata);
  const shown = (text: string, special = true) =>
    textTokens(tokenizer as never, text, special).tokens.map(({ id, text, bytes }) => `${id} ${text} ${bytes}`);

  test("have their texts and bytes", () => {
    assert.deepEqual(shown("Hey "), ["99 He 48 65", "88 y 79", "94   20"]);
    assert.deepEqual(shown("\n"), ["100 \\n 0a"]);
  });
  test("of parts of characters the bytes are shown", () => {
    assert.deepEqual(shown("🦙"), ["95 \\xf0 f0", "96 \\x9f 9f", "97 \\xa6 a6", "98 \\x99 99"]);
  });
  test("are control tokens by their names where that is asked for", () => {
    assert.deepEqual(shown("a<|end|>"), ["64 a 61", "101 <|end|> 3c 7c 65 6e 64 7c 3e"]);
    assert.equal(shown("a<|end|>", false).length, 8);
  });
  test("are shown up to a limit, and counted", () => {
    const { tokens, count } = textTokens(tokenizer as never, "x".repeat(5000), true);
    assert.equal(count, 5000);
    assert.equal(tokens.length, 1000);
  });
  test("that the vocabulary lacks are an error", () => {
    assert.throws(() => shown("é"), /the vocabulary has no token for/);
  });
});

describe("texts on the page", { skip: noPage, timeout: 600_000 }, () => {
  const { openServed, openChosen } = pages();

  async function openWith(
    metadata: [string, TypedValue][],
    options?: Parameters<typeof ViewPage.open>[2],
  ): Promise<ViewPage> {
    const path = join(folder, "model.gguf");
    writeFileSync(path, writeGguf({ metadata: [["general.architecture", str("llama")], ...metadata] }));
    const view = await openChosen([path], options);
    return view;
  }
  async function showTemplate(view: ViewPage, key = "tokenizer.chat_template"): Promise<void> {
    const panel = await view.tab("Metadata");
    await panel.getByRole("row").filter({ hasText: key }).first().click();
    await panel.getByRole("heading", { name: key, exact: true }).waitFor();
    await view.idle();
  }

  test("a template stands beside the conversation that it writes, and options change that", async () => {
    await using view = await openWith([
      ["tokenizer.chat_template", str(CHATML)],
      ["tokenizer.chat_template.short", str("{{ messages | length }}")],
    ]);
    await showTemplate(view);
    const rendered = view.page.getByTestId("rendered");
    assert.match((await rendered.textContent())!, /^<\|im_start\|>user\nWhat is a llama\?/);
    assert.equal(await view.page.getByTestId("value").textContent(), CHATML);
    await view.page.getByRole("checkbox", { name: "System message" }).check();
    await rendered.getByText("<|im_start|>system").waitFor();
    await view.page.getByRole("checkbox", { name: "Generation prompt" }).uncheck();
    await view.idle();
    assert.match((await rendered.textContent())!, /How tall does it grow\?<\|im_end\|>\n$/);
    await showTemplate(view, "tokenizer.chat_template.short");
    assert.equal(await rendered.textContent(), "3");
  });
  test("what a template writes is text, and cut where it is long", async () => {
    await using view = await openWith([
      ["tokenizer.chat_template", str(`${HOSTILE_TEXT}{% for i in range(99999) %}long {% endfor %}`)],
    ]);
    await showTemplate(view);
    const text = (await view.page.getByTestId("rendered").textContent())!;
    assert.ok(
      text.startsWith('<img src=x onerror="alert(1)">\\u202e\\u200b\\x00</pre><b>long long'),
      text.slice(0, 99),
    );
    assert.ok(text.length < 70_000);
    assert.equal(await view.page.locator("main img, main b").count(), 0);
    await view.page.getByText("The first part.").waitFor();
  });
  test("what a template does wrong is said, and its source is there", async () => {
    for (const [name, template, error] of BAD) {
      await using view = await openWith([["tokenizer.chat_template", str(template)]]);
      await showTemplate(view);
      assert.match((await view.alert.textContent())!, error, name);
      await view.page.getByTestId("value").waitFor();
    }
  });
  test("a template that does not end is ended, and the page works on", async () => {
    await using view = await openWith([["tokenizer.chat_template", str(SLOW)], ...VOCABULARY]);
    const panel = await view.tab("Metadata");
    await panel.getByRole("row").filter({ hasText: "tokenizer.chat_template" }).click();
    await view.page.getByRole("progressbar", { name: "Running the template" }).waitFor();
    // Its worker is one of its own: the one that answers is not busy.
    await panel.getByRole("row").filter({ hasText: "tokenizer.ggml.model" }).click();
    await panel.getByTestId("value").getByText("gpt2").waitFor();
    await showTemplate(view);
    assert.equal(await view.alert.textContent(), "the template takes longer than 2 seconds");
    await view.tab("Vocabulary");
    await view.page.getByRole("textbox", { name: "Text to tokens" }).fill("Hey");
    await view.page.getByTestId("tokens").getByText("He", { exact: true }).waitFor();
  });
  test("tokens of what is typed have numbers and bytes, and go nowhere", async () => {
    await using view = await openWith(VOCABULARY);
    const panel = await view.tab("Vocabulary");
    const address = view.page.url();
    await view.page.getByRole("textbox", { name: "Text to tokens" }).fill("He is<|end|>");
    const tokens = panel.getByTestId("tokens").getByRole("listitem");
    await tokens.nth(4).waitFor();
    assert.deepEqual(await tokens.allTextContents(), [
      "He9948 65",
      " 9420",
      "i7269",
      "s8273",
      "<|end|>1013c 7c 65 6e 64 7c 3e",
    ]);
    assert.equal(await panel.getByTestId("token-count").textContent(), "5 tokens");
    await panel.getByRole("checkbox", { name: "Control tokens by name" }).uncheck();
    await panel.getByText("11 tokens", { exact: true }).waitFor();
    await view.page.getByRole("textbox", { name: "Text to tokens" }).fill("é");
    await view.alert.waitFor();
    assert.match((await view.alert.textContent())!, /the vocabulary has no token for/);
    assert.equal(view.page.url(), address);
  });
  test("both work over the local server, too", async () => {
    const path = join(folder, "served.gguf");
    writeFileSync(path, writeGguf({ metadata: [["tokenizer.chat_template", str(CHATML)], ...VOCABULARY] }));
    await using view = await openServed([[path]]);
    await showTemplate(view);
    const rendered = (await view.page.getByTestId("rendered").textContent())!;
    assert.ok(rendered.endsWith("<|im_start|>assistant\n"), rendered);
    const panel = await view.tab("Vocabulary");
    await view.page.getByRole("textbox", { name: "Text to tokens" }).fill("He is<|end|>");
    await panel.getByText("5 tokens", { exact: true }).waitFor();
    assert.doesNotMatch(view.page.url(), /He/);
  });
  test("a vocabulary that is not known is an error where a text is typed, and not before", async () => {
    for (const [metadata, error] of [
      [[["tokenizer.ggml.model", str("other")], VOCABULARY[2]!], /kind 'other', and known are/],
      [[VOCABULARY[0]!, ["tokenizer.ggml.pre", str("<b>new")], VOCABULARY[2]!, VOCABULARY[4]!], /'<b>new'/],
    ] satisfies [[string, TypedValue][], RegExp][]) {
      await using view = await openWith(metadata);
      await view.tab("Vocabulary");
      await view.idle();
      assert.equal(await view.alert.count(), 0);
      await view.page.getByRole("textbox", { name: "Text to tokens" }).fill("a");
      await view.alert.waitFor();
      assert.match((await view.alert.textContent())!, error);
    }
  });
  test("all of it is reached with the keyboard", async () => {
    await using view = await openWith([["tokenizer.chat_template", str(CHATML)], ...VOCABULARY]);
    const { keyboard } = view.page;
    const isFocused = (locator: ReturnType<typeof view.page.locator>) =>
      locator.evaluate(
        (element) =>
          element === (globalThis as unknown as { document: { activeElement: unknown } }).document.activeElement,
      );
    const tabTo = async (locator: ReturnType<typeof view.page.locator>) => {
      for (let i = 0; i < 20 && !(await isFocused(locator)); i++) await keyboard.press("Tab");
      assert.ok(await isFocused(locator), String(locator));
    };
    const panel = await view.tab("Vocabulary");
    await tabTo(view.page.getByRole("textbox", { name: "Text to tokens" }));
    await keyboard.type("He");
    await panel.getByTestId("tokens").getByText("He", { exact: true }).waitFor();
    await tabTo(panel.getByRole("checkbox", { name: "Control tokens by name" }));
    await tabTo(panel.getByTestId("tokens"));
    await showTemplate(view);
    await tabTo(view.page.getByRole("checkbox", { name: "System message" }));
    await keyboard.press("Space");
    await view.page.getByTestId("rendered").getByText("You are a helpful assistant.").waitFor();
    await tabTo(view.page.getByTestId("rendered"));
    await tabTo(view.page.getByTestId("value"));
  });
  testLooks("axe finds nothing serious", async (options) => {
    await using view = await openWith(
      [["tokenizer.chat_template", str(CHATML)], ["tokenizer.chat_template.bad", str("{{ x")], ...VOCABULARY],
      options,
    );
    await view.tab("Vocabulary");
    await view.page
      .getByRole("textbox", { name: "Text to tokens" })
      .fill("He is a 🦙, and likes to be\n one ".repeat(40));
    await view.page.getByTestId("tokens").waitFor();
    await expectNothingSerious(view, "tokens");
    await showTemplate(view);
    await expectNothingSerious(view, "a template");
  });
});
