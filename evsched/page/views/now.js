// Now or then: queues and nodes at the moment of the time bar; the same page live and in the past.

import { html } from "../vendor/htm-preact.js";
import { useMemo } from "../vendor/preact-hooks.js";
import { useAnswer } from "../api.js";
import { focus, go, seq } from "../focus.js";
import { Heat } from "../heat.js";
import { Choice, Fault, Filter, Nothing, selected } from "../parts.js";
import { Detail } from "../detail.js";
import { List, tabsOf } from "../lists.js";
import { QueueTable } from "../queue-table.js";
import * as routes from "../routes.js";
import { Treemap } from "../treemap.js";
import { parents, resourcesOf, trees, words } from "../words.js";

/** Queues and settings come on one page. */
const MOST = 10_000;

export default function Now() {
  const at = seq.value;
  const queues = useAnswer(at === null ? null : routes.rows(at, "queues", MOST));
  const rows = queues.answer?.rows ?? [];
  const said = words(rows);
  const tab = tabsOf(said).some(([name]) => name === focus.value.tab) ? focus.value.tab : "overview";
  const settings = useAnswer(said.kueue && at !== null ? routes.rows(at, "config", MOST) : null);
  const above = useMemo(() => parents(rows, settings.answer?.rows), [rows, settings.answer]);
  const found = resourcesOf(rows);
  // Before anything is used, given or wanted there is none to choose, and every figure is 0.
  const resource = found.includes(focus.value.res) ? focus.value.res : found[0] ?? "";
  return html`<section class=${`now ${queues.current ? "" : "old"}`} aria-label="State" data-seq=${queues.answer?.seq}>
    <div class="tools">
      <div class="tabs" role="tablist" aria-label="What is shown">
        ${tabsOf(said).map(([name, title]) => html`<button type="button" role="tab" aria-selected=${tab === name}
          onClick=${() => go({ tab: name === "overview" ? undefined : name, q: undefined })}>
          ${title(said)}</button>`)}
      </div>
      ${tab === "overview"
        ? resource && html`<${Choice} label="resource" name="res" value=${resource} options=${found} />`
        : html`<${Filter} label="narrow" value=${focus.value.q} hint="part of a name" />`}
    </div>
    <${Fault} error=${queues.error} />
    <div class="split">
      <div class="wide">
        ${tab === "overview"
          ? html`<${Overview} rows=${rows} above=${above} resource=${resource} said=${said} known=${Boolean(queues.answer)} />`
          : html`<${List} tab=${tab} said=${said} />`}
      </div>
      <${Detail} rows=${rows} said=${said} />
    </div>
  </section>`;
}

function Overview({ rows, above, resource, said, known }) {
  const tops = useMemo(() => trees(rows, above), [rows, above]);
  const picked = selected(focus.value.sel);
  if (known && !rows.length) {
    return html`<${Nothing}>No configuration is in force at this moment: there are no queues yet.
      <code>evsched config apply queues.yaml</code> proposes one.<//>`;
  }
  const queue = picked?.kind === "queue" ? picked.id : null;
  return html`
    <h2>${said.queues}</h2>
    <${Treemap} tops=${tops} resource=${resource} picked=${queue} />
    <${Legend} said=${said} />
    <${QueueTable} tops=${tops} resource=${resource} said=${said} picked=${queue} />
    ${known && !said.kueue && html`<${Nodes} picked=${picked?.kind === "node" ? picked.id : null} wished=${resource} />`}`;
}

const Legend = ({ said }) => html`<p class="legend" aria-hidden="true">
  <i class="used"></i>used <i class="leaving"></i>leaving <i class="pending"></i>waiting
  <i class="due"></i>${said.entitled} <i class="over"></i>above its maximum</p>`;

function Nodes({ picked, wished }) {
  const { answer, error } = useAnswer(seq.value === null ? null : routes.loads(seq.value, wished));
  const found = answer?.nodes.length ?? 0;
  return html`<h2>Nodes</h2><${Fault} error=${error} />
    ${answer && !found && html`<${Nothing}>No node is registered at this moment.<//>`}
    ${found > 0 && html`<${Heat} loads=${answer} picked=${picked} />`}
    ${answer?.total > found && html`<p class="dim">The first ${found} of ${answer.total} nodes.</p>`}`;
}
