/** The tensors by block, with search and sort, and one of them in full. */
import { useMemo, useState } from "preact/hooks";
import type { TensorTable } from "#dist/describe/tensor-table";
import { counted, humanBytes } from "#dist/describe/text";
import type { ModelView } from "../lib/protocol";
import { blockLines, type Line, ORDERS, type Order, orderIn, selectTensors } from "../lib/tensor-list";
import { Grid } from "./grid";
import { matchesText } from "./metadata";
import { Missing, Search } from "./parts";
import { Bar, Choice, TypeName } from "./pictures";
import { useView } from "./place";
import { Split } from "./split";
import { TensorDetail } from "./tensor";

const COLUMNS = [
  { title: "Name", className: "c-name name", order: "name" },
  { title: "Type", className: "c-type", order: "type" },
  { title: "Shape", className: "c-shape note", order: "weights", isDescending: true },
  { title: "Bytes", className: "c-size", order: "size", isDescending: true },
];

const ORDER_NAMES: Record<Order, string> = {
  file: "Blocks, as in the file",
  name: "Name",
  type: "Type",
  size: "Size",
  weights: "Weights",
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
  const [order, isReversed] = orderIn(ORDERS, orderName, "file");
  const [closed, setClosed] = useState<ReadonlySet<number>>(new Set());
  const isByBlock = order === "file";
  const found = useMemo(() => selectTensors(tensors, search, order, isReversed), [tensors, search, orderName]);
  // What is outside of blocks would dwarf all others.
  const largest = useMemo(() => {
    const isCounted = (i: number): boolean => tensors.blocks.length === 0 || tensors.blockOf[i] !== -1;
    return tensors.byteLengths.reduce((a, b, i) => (isCounted(i) ? Math.max(a, b || 0) : a), 1);
  }, [tensors]);
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
        <TypeName key="type" {...tensors} type={tensors.typeOf[tensor] as number} />,
        tensors.shapes[tensor],
        <>
          <span class="number">{humanBytes(tensors.byteLengths[tensor] as number)}</span>
          <Bar share={(tensors.byteLengths[tensor] || 0) / largest} />
        </>,
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
            <Choice label="Order" options={ORDER_NAMES} value={order} onChange={(value) => setOrder(value, "push")} />
          </Search>
          <Grid
            label="Tensors"
            columns={COLUMNS}
            order={isReversed ? orderName : order}
            search={search}
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
