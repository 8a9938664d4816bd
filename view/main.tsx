/** The program of the page. */
import { render } from "preact";
import { App } from "./page/app";

render(<App />, document.getElementById("app") as HTMLElement);
