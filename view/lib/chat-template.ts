/** Chat templates of a model, and the conversation that is written with them. */
import type { GgufMetadata } from "gguf-native";
import { stringText } from "#dist/describe/metadata-text";
import { TOKENS_KEY, vocabularyTokens } from "#dist/describe/vocabulary";
import { countOf } from "#dist/file/scalars";
import { defaultTokenId, SPECIAL_TOKENS, tokenIdKey } from "#dist/tokenizer/special-tokens";

/** What the worker that runs templates is asked. */
export interface TemplateTask {
  readonly source: string;
  /** What the template finds under these names. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** The time, in milliseconds since 1970. */
  readonly now: number;
}

/** What a conversation has. */
export interface Conversation {
  readonly system: boolean;
  readonly tool: boolean;
  /** Whether the text ends where the model is to go on. */
  readonly addGenerationPrompt: boolean;
}

/** Whether a key's value is a chat template: the one of the model, or one with a name. */
export function isChatTemplate(key: string): boolean {
  return /^tokenizer\.chat_template(\..|$)/s.test(key);
}

/** The most bytes of a template that is run. */
const MOST_SOURCE = 1 << 20;

/** The most bytes of a token. */
const MOST_TOKEN = 1000;

/** What is asked to write a conversation with a template of a model. @throws Error for a template that is too long */
export function templateTask(
  metadata: GgufMetadata,
  key: string,
  conversation: Conversation,
  now: number,
): TemplateTask {
  const source = metadata.string(key) ?? "";
  if (source.length > MOST_SOURCE) {
    throw new Error(`the template has ${source.length} characters, of which at most ${MOST_SOURCE} are run`);
  }
  const { addGenerationPrompt, tool } = conversation;
  const variables = {
    ...tokenTexts(metadata),
    messages: messagesOf(conversation),
    tools: tool ? [TOOL] : null,
    documents: null,
    add_generation_prompt: addGenerationPrompt,
  };
  return { source, variables, now };
}

/** The texts of special tokens; those that begin and end a text are "" where the model has none, as llama.cpp has them. */
function tokenTexts(metadata: GgufMetadata): Record<string, string> {
  const kind = stringText(metadata, "tokenizer.ggml.model");
  const names = new Map<number, string[]>();
  for (const name of SPECIAL_TOKENS) {
    const id = countOf(metadata, tokenIdKey(name)) ?? defaultTokenId(kind, name);
    if (id !== undefined) names.set(id, [...(names.get(id) ?? []), `${name}_token`]);
  }
  const texts: Record<string, string> = { bos_token: "", eos_token: "" };
  const type = metadata.typeOf(TOKENS_KEY);
  if (type?.type !== "array" || type.elementType !== "string") return texts;
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const last = Math.max(...names.keys());
  for (const { id, bytes } of vocabularyTokens(metadata)) {
    if (id > last) break;
    for (const name of names.get(id) ?? []) texts[name] = decoder.decode(bytes.subarray(0, MOST_TOKEN));
  }
  return texts;
}

const TOOL = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather at a place.",
    parameters: {
      type: "object",
      properties: { place: { type: "string", description: "Name of the place" } },
      required: ["place"],
    },
  },
};

function messagesOf({ system, tool }: Conversation): object[] {
  // Some templates take only identifiers of nine characters.
  const call = {
    id: "call00001",
    type: "function",
    function: { name: "get_weather", arguments: { place: "Cusco" } },
  };
  return [
    ...(system ? [{ role: "system", content: "You are a helpful assistant." }] : []),
    { role: "user", content: "What is a llama?" },
    { role: "assistant", content: "An animal of the Andes, and a relative of the camel." },
    { role: "user", content: tool ? "Is it cold where they live, in Cusco?" : "How tall does it grow?" },
    ...(tool
      ? [
          { role: "assistant", content: "", tool_calls: [call] },
          { role: "tool", name: "get_weather", tool_call_id: call.id, content: "4 degrees, clear" },
        ]
      : []),
  ];
}
