import { Badge } from "../components/badge.tsx";
import { inOrder, Prose, Words } from "../components/prose.tsx";
import type { Field, Shape, Topic, TypePart } from "./reference.ts";
import { BOTH_CLASS, SIDE_CLASS } from "./sides.ts";
import { Anchor, Section } from "./section.tsx";

/** The shapes of one topic: those of the OpenAI format beside those of the contract. */
export function TopicView({ topic }: { readonly topic: Topic }) {
  return (
    <Section id={topic.id} title={topic.title} level={3}>
      <Shapes http={topic.http} grpc={topic.grpc} />
    </Section>
  );
}

/** The same without a heading of its own. */
export function Shapes({ http, grpc }: Pick<Topic, "http" | "grpc">) {
  return (
    <div className={`items-start gap-6 ${BOTH_CLASS}`}>
      <Column title="HTTP" side="http" shapes={http} />
      <Column title="gRPC and Connect" side="grpc" shapes={grpc} />
    </div>
  );
}

interface ColumnProps {
  readonly title: string;
  readonly side: keyof typeof SIDE_CLASS;
  readonly shapes: readonly Shape[];
}

function Column({ title, side, shapes }: ColumnProps) {
  if (shapes.length === 0) return null;
  return (
    <div className={`min-w-0 space-y-4 ${SIDE_CLASS[side]}`}>
      <p className="text-xs font-semibold text-muted">{title}</p>
      {shapes.map((shape) => (
        <ShapeView key={shape.anchor} shape={shape} />
      ))}
    </div>
  );
}

function ShapeView({ shape: { anchor, name, text, fields, choices } }: { readonly shape: Shape }) {
  return (
    <div className="rounded-xl border border-line bg-surface print:break-inside-auto">
      <div id={anchor} className="scroll-mt-6 space-y-1 rounded-t-xl px-4 py-3 target:bg-accent-soft">
        <p className="font-mono text-sm font-semibold wrap-anywhere">
          <Anchor to={anchor}>{name}</Anchor>
        </p>
        <Prose text={text} className="text-sm text-muted" />
        {choices && (
          <p className="text-sm text-muted">
            One of <Type parts={choices} />.
          </p>
        )}
      </div>
      {fields.length > 0 && (
        <dl className="divide-y divide-line border-t border-line">
          {fields.map((field) => (
            <FieldRow key={field.anchor} field={field} />
          ))}
        </dl>
      )}
    </div>
  );
}

function FieldRow({ field: { anchor, name, type, presence, facts, text } }: { readonly field: Field }) {
  return (
    <div
      id={anchor}
      className="scroll-mt-6 px-4 py-2.5 last:rounded-b-xl target:bg-accent-soft print:break-inside-avoid"
    >
      <dt className="flex flex-wrap items-baseline gap-x-2.5 gap-y-1">
        <span className="font-mono text-[0.8125rem] font-medium wrap-anywhere">
          <Anchor to={anchor}>{name}</Anchor>
        </span>
        {type.length > 0 && (
          <span className="text-xs text-muted wrap-anywhere">
            <Type parts={type} />
          </span>
        )}
        {presence !== undefined && <Badge look="plain">{presence}</Badge>}
      </dt>
      <dd className="mt-0.5 space-y-0.5 text-sm">
        {facts.length > 0 && (
          <p className="text-[0.8125rem] wrap-anywhere text-muted">
            <Words text={facts.join("; ")} />
          </p>
        )}
        {text !== "" && <Prose text={text} />}
      </dd>
    </div>
  );
}

/** A type's name, with links to the shapes in it. */
export function Type({ parts }: { readonly parts: readonly TypePart[] }) {
  return inOrder(parts, ({ text, anchor }) =>
    anchor === undefined ? (
      text
    ) : (
      <a href={`#${anchor}`} className="text-accent underline underline-offset-2">
        {text}
      </a>
    ),
  );
}
