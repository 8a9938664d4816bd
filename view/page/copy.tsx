/** What people take along: text to the clipboard, pictures as files. */
import { useEffect, useState } from "preact/hooks";

/** Copies a text, or a picture that is made then, and says whether that was possible. */
export function CopyButton({ what, content }: { what: string; content: string | (() => Promise<Blob>) }) {
  const [said, setSaid] = useState("");
  useEffect(() => setSaid(""), [typeof content === "string" ? content : what]);
  const copy = async (): Promise<void> => {
    try {
      if (typeof content === "string") await navigator.clipboard.writeText(content);
      else await navigator.clipboard.write([new ClipboardItem({ "image/png": content() })]);
      setSaid("Copied");
    } catch {
      setSaid("Not allowed");
    }
  };
  return (
    <button type="button" onClick={() => void copy()}>
      <span aria-live="polite">{said || `Copy ${what}`}</span>
    </button>
  );
}

/** Has the browser save a file. */
function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name.replace(/[^\w.-]+/g, "_");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const WIDTH = 1024;
const MARGIN = 24;
const LINE = 22;

/** The heatmap in an element as PNG, with its name and what its colours mean beneath. */
export async function pictureOf(element: HTMLElement | null, name: string): Promise<Blob> {
  const source = element?.querySelector("canvas");
  if (!source) throw new Error("there is no picture");
  const height = Math.max(32, Math.round(source.clientHeight * (WIDTH / source.clientWidth)));
  const caption = (source.getAttribute("aria-label") ?? "").split("; ");
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH + 2 * MARGIN;
  canvas.height = height + 2 * MARGIN + (caption.length + 1) * LINE;
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  const style = getComputedStyle(document.body);
  context.fillStyle = style.backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingEnabled = false;
  context.drawImage(source, MARGIN, MARGIN, WIDTH, height);
  context.fillStyle = style.color;
  context.font = "15px system-ui, sans-serif";
  for (const [i, line] of [name, ...caption].entries()) {
    context.fillText(line, MARGIN, height + MARGIN + (i + 1) * LINE, WIDTH);
  }
  return pngOf(canvas);
}

function pngOf(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large"))), "image/png");
  });
}

/** Saves an SVG picture. */
export function saveSvgText(svg: string, name: string): void {
  save(svgBlob(svg), `${name}.svg`);
}

/** Saves an SVG picture as PNG, of two pixels each. */
export async function saveSvgAsPng(svg: string, name: string): Promise<void> {
  const image = new Image();
  image.src = URL.createObjectURL(svgBlob(svg));
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  save(await pngOf(canvas), `${name}.png`);
}

const svgBlob = (svg: string): Blob => new Blob([svg], { type: "image/svg+xml" });

export async function savePicture(element: HTMLElement | null, name: string): Promise<void> {
  save(await pictureOf(element, name), `${name}.png`);
}

/** Saves a picture that is drawn in lines as SVG, in the colours that it has on the page. */
export function saveSvg(source: SVGSVGElement | null, name: string): void {
  if (source === null) return;
  const copy = source.cloneNode(true) as SVGSVGElement;
  const shown = source.querySelectorAll("rect");
  for (const [i, bar] of [...copy.querySelectorAll("rect")].entries()) {
    bar.setAttribute("fill", getComputedStyle(shown[i] as SVGRectElement).fill);
  }
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  saveSvgText(new XMLSerializer().serializeToString(copy), name);
}
