/** The program of the page and of its worker, which is the same file. Build: npm run build -- search-page */
import { startPage } from "./page.mjs";
import { startWorker } from "./worker.mjs";

if (globalThis.document === undefined) startWorker(globalThis);
else startPage(new Worker(import.meta.url, { type: "module" }));
