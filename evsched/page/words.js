// The words of the configuration in force: YuniKorn's or Kueue's. Rows of Kueue have a nominal quota.

import { resources } from "./amounts.js";

const YUNIKORN = {
  kueue: false, queue: "Queue", queues: "Queues", ask: "Ask", asks: "Asks", allocation: "Allocation",
  allocations: "Allocations", entitled: "guaranteed", limit: "max",
};
const KUEUE = {
  kueue: true, queue: "ClusterQueue", queues: "ClusterQueues and cohorts", ask: "Workload",
  asks: "Pending workloads", allocation: "Workload", allocations: "Admitted workloads",
  entitled: "nominal", limit: "borrowing limit",
};

export const words = (queues) => (queues[0]?.nominal === undefined ? YUNIKORN : KUEUE);

/** What a queue is entitled to: its guarantee, its nominal quota, a cohort's quota of the tree. */
export const entitled = (row) => row.guaranteed ?? row.quota ?? row.nominal ?? {};

/** The most of a resource that a queue may use; undefined: not limited here. */
export function limit(row, resource) {
  if (row.maximum) return row.maximum[resource];
  const borrowed = row.borrowing_limit?.[resource];
  return borrowed === undefined ? undefined : Number(row.nominal?.[resource] ?? 0) + Number(borrowed);
}

/** What waits; Kueue's workloads have no flavor while they wait. */
export const pending = (row, resource) =>
  row.pending?.[resource] ?? row.pending?.[resource.slice(resource.lastIndexOf("/") + 1)];

/** Names of the resources that these queues use or are given; where there are none, of what waits. */
export function resourcesOf(queues) {
  const found = resources(queues.flatMap((row) => [row.usage, entitled(row), row.maximum ?? {}]));
  return found.length ? found : resources(queues.map((row) => row.pending));
}

/** Queue to the queue above it. Names of YuniKorn are paths; Kueue's are in the configuration. */
export function parents(queues, settings) {
  const found = new Map();
  if (words(queues).kueue) {
    for (const { setting, value } of settings ?? []) {
      const named = /^(cohorts|cluster_queues)\[(.*)\]\.(parent|cohort)$/.exec(setting);
      if (named && value) found.set(named[1] === "cohorts" ? `cohort/${named[2]}` : named[2], `cohort/${value}`);
    }
    return found;
  }
  for (const { queue } of queues) {
    const cut = queue.lastIndexOf(".");
    if (cut > 0) found.set(queue, queue.slice(0, cut));
  }
  return found;
}

/** The queues as trees, in their order: [{ row, depth, children }]. */
export function trees(queues, above) {
  const nodes = new Map(queues.map((row) => [row.queue, { row, depth: 0, children: [] }]));
  const tops = [];
  for (const [name, node] of nodes) {
    const parent = nodes.get(above.get(name));
    if (parent) parent.children.push(node);
    else tops.push(node);
  }
  const deepen = (node, depth) => {
    node.depth = depth;
    node.children.forEach((child) => deepen(child, depth + 1));
  };
  tops.forEach((node) => deepen(node, 0));
  return tops;
}

/** Trees as a list, parents first. */
export const flat = (nodes) => nodes.flatMap((node) => [node, ...flat(node.children)]);

/** The last part of a queue's name, as it is told apart from those beside it. */
export const lastName = (queue) => queue.slice(Math.max(queue.lastIndexOf("."), queue.indexOf("/")) + 1);
