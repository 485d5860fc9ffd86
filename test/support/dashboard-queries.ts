// The queries of docs/grafana-dashboard.json, and what they ask for: names of metrics and of labels.
import { textOf } from '../architecture/source-files.js';

export interface DashboardQuery {
  /** Title of the panel, or name of the variable. */
  readonly of: string;
  /** As Prometheus takes it; variables of Grafana in it. Of a variable: what it gives the values of a label of. */
  readonly expression: string;
  /** Whose values a variable offers; undefined in a panel. */
  readonly label: string | undefined;
  readonly legend: string;
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

interface Variable {
  readonly name: string;
  readonly type: string;
  readonly definition?: string;
}

interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly Variable[] };
}

export const dashboard = JSON.parse(textOf('docs/grafana-dashboard.json')) as Dashboard;

export function dashboardQueries(): readonly DashboardQuery[] {
  const ofPanels = dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({ of: title, expression: expr, label: undefined, legend: legendFormat })),
  );
  const ofVariables = dashboard.templating.list.flatMap(({ name, type, definition = '' }) => {
    if (type !== 'query') return [];
    const [, expression, label] = /^label_values\((.+), (\w+)\)$/.exec(definition) ?? [];
    if (expression === undefined)
      throw new Error(`variable ${name}: ${definition} is no label_values(selector, label)`);
    return [{ of: `variable ${name}`, expression, label, legend: '' }];
  });
  return [...ofVariables, ...ofPanels];
}

/** The words of queries that are no metrics. */
const FUNCTIONS = new Set(['sum', 'max', 'rate', 'increase', 'max_over_time', 'histogram_quantile']);

export function metricsIn({ expression }: DashboardQuery): readonly string[] {
  const bare = expression.replaceAll(/\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)/g, ' ');
  return [...new Set([...bare.matchAll(/[a-z_]\w*/g)].map(([name]) => name).filter((name) => !FUNCTIONS.has(name)))];
}

/** Of selectors, groupings and the legend. */
export function labelsIn({ expression, label, legend }: DashboardQuery): readonly string[] {
  const selected = [...expression.matchAll(/\{([^}]*)\}/g)].flatMap(([, selector = '']) =>
    [...selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, name = '']) => name),
  );
  const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/,\s*/));
  const shown = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, name = '']) => name);
  return [...new Set([...selected, ...grouped, ...shown, ...(label === undefined ? [] : [label])])];
}
