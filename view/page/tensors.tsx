/** The tensors by block, with search and sort, and one of them in full. */
import { useMemo, useState } from "preact/hooks";
import type { TensorTable } from "#dist/describe/tensor-table";
import { counted, humanBytes } from "#dist/describe/text";
import type { ModelView } from "../lib/protocol";
import { blockLines, type Line, ORDERS, type Order, selectTensors } from "../lib/tensor-list";
import { Grid } from "./grid";
import { matchesText } from "./metadata";
import { Missing, OrderChoice, Search } from "./parts";
import { useView } from "./place";
import { Split } from "./split";
import { TensorDetail } from "./tensor";

const COLUMNS = [
  { title: "Name", className: "c-name name", order: "name" },
  { title: "Type", className: "c-short", order: "type" },
  { title: "Shape", className: "c-shape note", order: "weights", isDescending: true },
  { title: "Bytes", className: "c-bytes number", order: "size", isDescending: true },
];

const ORDER_NAMES: Record<Order, string> = {
  file: "Blocks, as in the file",
  name: "Name",
  type: "Type",
  size: "Size, largest first",
  weights: "Weights, most first",
};

export function Tensors({
  model,
  name,
  onOpen,
}: {
  model: ModelView;
  /** Of the tensor that is shown, if one is. */
  name: string;
  onOpen: (name: string) => void;
}) {
  const { tensors } = model;
  const [search, setSearch] = useView("search");
  const [orderName, setOrder] = useView("order", "file");
  const order = ORDERS.find((one) => one === orderName) ?? "file";
  const [closed, setClosed] = useState<ReadonlySet<number>>(new Set());
  const isByBlock = order === "file";
  const found = useMemo(() => selectTensors(tensors, search, order), [tensors, search, order]);
  const lines = useMemo(
    (): Line[] => (isByBlock ? blockLines(tensors, found, closed) : found.map((tensor) => ({ tensor }))),
    [tensors, found, closed, isByBlock],
  );
  const open = name === "" ? -1 : tensors.names.indexOf(name);
  const detail =
    open >= 0 ? (
      <TensorDetail key={open} model={model} index={open} />
    ) : name === "" ? undefined : (
      <Missing noun="tensor" name={name} />
    );
  const selected = useMemo(
    () => (open < 0 ? undefined : lines.findIndex((line) => "tensor" in line && line.tensor === open)),
    [lines, open],
  );
  const toggle = (block: number): void => {
    const next = new Set(closed);
    if (!next.delete(block)) next.add(block);
    setClosed(next);
  };
  const row = (i: number) => {
    const line = lines[i] as Line;
    if ("block" in line) {
      const { block, count, bytes, isOpen } = line;
      const title = (
        <>
          <span class="arrow" aria-hidden="true" />
          <span class="name">{tensors.blocks[block]}</span>
          <span class="note">
            {counted(count, "tensor")}, {humanBytes(bytes)}
          </span>
        </>
      );
      return { title, isOpen };
    }
    const { tensor } = line;
    return {
      cells: [
        isByBlock ? <MemberName table={tensors} tensor={tensor} /> : tensors.names[tensor],
        tensors.types[tensors.typeOf[tensor] as number],
        tensors.shapes[tensor],
        humanBytes(tensors.byteLengths[tensor] as number),
      ],
    };
  };
  return (
    <Split
      detail={detail}
      detailKey={name}
      detailLabel="Tensor"
      testId="tensor"
      onClose={() => onOpen("")}
      list={
        <>
          <Search
            label="Search tensors"
            value={search}
            onInput={setSearch}
            matches={matchesText(found.length, tensors.names.length, "tensor")}
          >
            <OrderChoice names={ORDER_NAMES} value={order} onChange={(value) => setOrder(value, "push")} />
          </Search>
          <Grid
            label="Tensors"
            columns={COLUMNS}
            order={order}
            onOrder={(value) => setOrder(value, "push")}
            count={lines.length}
            selected={selected}
            row={row}
            onOpen={(i) => {
              const line = lines[i];
              if (line === undefined) return;
              if ("block" in line) toggle(line.block);
              else onOpen(tensors.names[line.tensor] as string);
            }}
          />
        </>
      }
    />
  );
}

/** The name of a tensor under the title of its block, which a phone has no room to repeat. */
function MemberName({ table, tensor }: { table: TensorTable; tensor: number }) {
  const name = table.names[tensor] as string;
  const prefix = `${table.blocks[table.blockOf[tensor] as number]}.`;
  if (!name.startsWith(prefix)) return <>{name}</>;
  return (
    <>
      <span class="prefix">{prefix}</span>
      {name.slice(prefix.length)}
    </>
  );
}
