/** The program of the worker that runs a chat template. Whoever started it ends it where that takes too long. */
import type { TemplateTask } from "../lib/chat-template";
import { renderTemplate } from "./render";

addEventListener("message", ({ data }: MessageEvent<TemplateTask>) => {
  try {
    postMessage({ text: renderTemplate(data) });
  } catch (error) {
    postMessage({ error: (error as Error).message });
  }
});
