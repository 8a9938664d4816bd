/** A chat template: its source, and a conversation that is written with it. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Conversation } from "../lib/chat-template";
import type { ModelView } from "../lib/protocol";
import { ask, useAnswer } from "./client";
import { Answered, Section } from "./parts";

const OPTIONS: readonly (readonly [keyof Conversation, label: string])[] = [
  ["system", "System message"],
  ["tool", "A tool"],
  ["addGenerationPrompt", "Generation prompt"],
];

export function ChatTemplate({
  model,
  index,
  source,
}: {
  model: ModelView;
  /** The number of its key. */
  index: number;
  source: ComponentChildren;
}) {
  // Not every template takes a system message or a tool.
  const [conversation, setConversation] = useState<Conversation>({
    system: false,
    tool: false,
    addGenerationPrompt: true,
  });
  const answer = useAnswer(`${model.id} ${index} ${JSON.stringify(conversation)}`, (options) =>
    ask("template", { model: model.id, key: index, conversation }, options).then((task) =>
      ask("render", task, options),
    ),
  );
  return (
    <div class="template">
      <Section title="A conversation">
        <div class="fields">
          {OPTIONS.map(([name, label]) => (
            <label key={name} class="check">
              <input
                type="checkbox"
                checked={conversation[name]}
                onChange={(event) => setConversation({ ...conversation, [name]: event.currentTarget.checked })}
              />
              {label}
            </label>
          ))}
        </div>
        <Answered answer={answer} label="Running the template">
          {({ text, isCut }) => (
            <>
              {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long text is scrolled by keys */}
              <pre class="value" data-testid="rendered" tabIndex={0}>
                {text}
              </pre>
              {isCut ? <p class="note">The first part.</p> : null}
            </>
          )}
        </Answered>
      </Section>
      <Section title="Its template">{source}</Section>
    </div>
  );
}
