/* SPDX-License-Identifier: BSD-2-Clause */
/* The page: built when the cluster's shape is another one, brought up to date by each look. */
const $ = id => document.getElementById(id);
const graph = $("graph");
let last = null, rates = new Map(), shape = "", plan = null, updates = [], chosen = null, narrowest = 0;

function make(tag, className, text) {
	const e = document.createElement(tag);
	if (className)
		e.className = className;
	if (text !== undefined)
		e.textContent = text;
	return e;
}

function setText(e, text) {
	if (e.textContent !== text)
		e.textContent = text;
}

/* Lines of the picture are by those that describe them, and need no names of their own. */
function makePath(className) {
	const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
	path.setAttribute("class", className ?? "");
	$("wires").append(path);
	return path;
}

/* A line by what passes it. */
function dress(path, down, rate) {
	path.classList.toggle("down", down);
	path.classList.toggle("busy", !down && rate > 0);
	path.style.strokeWidth = `${1.5 + (rate > 0 ? Math.min(2.5, Math.log10(1 + rate / 1024) / 2) : 0)}px`;
}

/* Something that can be chosen; @describe returns its title and its rows. */
function choosable(e, describe, lit) {
	e.addEventListener("click", () => choose({describe, lit, by: e}));
	return e;
}

function choose(what) {
	chosen = what;
	$("detail").hidden = !what;
	showDetail();
}

function showDetail() {
	for (const card of graph.querySelectorAll(".host"))
		card.classList.toggle("lit", Boolean(chosen?.lit?.().includes(card.dataset.name)));
	if (!chosen)
		return;
	const [title, rows] = chosen.describe();
	setText($("what"), title);
	$("values").replaceChildren(...rows.filter(([, value]) => value !== undefined && value !== "")
		.flatMap(([name, value]) => [make("dt", "", name), make("dd", "", String(value))]));
}

const movedRows = row => [["read", speed(row?.read_bytes_per_second)], ["written", speed(row?.written_bytes_per_second)],
	["read requests", perSecond(row?.reads_per_second)], ["posted writes", perSecond(row?.writes_per_second)],
	["interrupts", row?.interrupts_per_second === undefined ? undefined : perSecond(row.interrupts_per_second)]];
const laneRow = link => ["link", `x${link.link_width}, generation ${link.link_generation}`];

/* ---- the parts of the picture ---- */

function buildPin(pins, hostIndex, index) {
	const host = () => last.hosts[hostIndex], adapter = () => host().adapters[index];
	const row = () => rates.get(`link/${host().node}/${index}`);
	const pin = choosable(make("button", "pin"), () => [`link ${linkName(host(), adapter())}`, [
		["state", isOff(host()) ? "off" : adapter().link], laneRow(adapter()),
		["machine", adapter().attached === undefined ? undefined : adapter().attached ? "attached" : "not attached"],
		["its driver", adapter().attached ? adapter().driver_ready ? "ready" : "not ready" : undefined],
		["traffic", adapter().traffic_counted === false ? "not counted: its window is mapped" : undefined],
		["leads to", adapter().switch ?? (adapter().attached_to === "link" ? `cable ${adapter().cable}` : "nothing")],
		["in chassis", adapter().in], ...movedRows(row()), ["faults", faultsOf(row())],
		["look-up entries free", adapter().entries_free === undefined ? undefined :
			`${adapter().entries_free} of ${adapter().entries_total}`],
		["requester entries free", adapter().requesters_free === undefined ? undefined :
			`${adapter().requesters_free} of ${adapter().requesters_total}`]]]);
	pins.append(pin);
	return {element: pin, update(path) {
		const a = adapter(), rate = passes(row()), down = isCut(host(), a), state = isOff(host()) ? "off" : a.link;
		const moves = a.traffic_counted === false ? "not counted" : speed(rate);
		const text = state !== "up" ? state : a.traffic_counted === false ? "mapped" : rate === undefined ? "-" : `${short(rate)}/s`;
		setText(pin, `${a.adapter}: ${text}`);
		pin.setAttribute("aria-label", `link ${linkName(host(), a)}, ${state}, ${moves}`);
		pin.title = `link ${linkName(host(), a)}: ${state}, ${moves}`;
		pin.classList.toggle("down", down);
		pin.classList.toggle("busy", !down && rate > 0);
		if (path)
			dress(path, down, rate);
	}};
}

function buildDevice(parent, hostIndex, index) {
	const host = () => last.hosts[hostIndex], device = () => host().devices[index];
	const row = () => rates.get(`device/${host().node}/${device().id}`);
	const button = choosable(make("button", "device"), () => [`device ${device().name}`, [
		["type", device().type], [isMachine(host()) ? "of machine" : "lender", host().name], ["state", device().state],
		["in chassis", device().in], ["borrowed by", isMachine(host()) ? undefined : borrowers(row()) || "nobody"], ["quarantined", device().quarantined],
		["commands", row()?.commands_per_second === undefined ? undefined : perSecond(row().commands_per_second)],
		...movedRows(row()), ["faults", faultsOf(row())],
		["queue pairs", row()?.queue_pairs === undefined ? undefined : `${row().queue_pairs} of ${row().queue_pairs_max}`],
		["reset", device().reset_state], ["resets seen", device().generation], ["size", device().size ? size(device().size) : undefined]]],
		() => (row()?.borrowed_by ?? []).map(b => b.host));
	const name = make("span"), does = make("span", "rate"), by = make("span"), wrong = make("span", "bad");
	const bold = make("b"), state = make("small", "muted");
	name.append(bold, " ", state);
	button.append(name, does, by, wrong);
	parent.append(button);
	updates.push(() => {
		const d = device(), r = row(), rate = passes(r);
		setText(bold, d.name);
		setText(state, isIn(d) ? d.state : "");
		setText(does, rate > 0 ? speed(rate) : "");
		setText(by, borrowers(r) ? `→ ${borrowers(r)}` : "");
		const bad = [isIn(d) ? "" : d.state, d.quarantined ? `quarantine: ${d.quarantined}` : "",
			r?.faults_per_second ? `${perSecond(r.faults_per_second)} faults` : ""].filter(Boolean).join(", ");
		setText(wrong, bad);
		for (const e of [does, by, wrong])
			e.hidden = !e.textContent;
		button.title = `${d.name} (${d.type}), ${d.state}${borrowers(r) ? `, borrowed by ${borrowers(r)}` : ""}`;
		button.classList.toggle("busy", rate > 0);
		button.classList.toggle("gone", !isIn(d));
	});
}

function buildChassis(parents, card, hostIndex, index) {
	const host = () => last.hosts[hostIndex], chassis = () => host().chassis[index];
	const row = () => rates.get(`chassis/${host().node}/${index}`);
	const path = chassis().name, outer = parents.get(path.slice(0, path.lastIndexOf("/"))) ?? card;
	const box = make("div", "chassis");
	const button = choosable(make("button"), () => [`chassis ${chassis().name} of ${host().name}`,
		[laneRow(chassis()), ...movedRows(row())]]);
	box.append(button);
	outer.append(box);
	parents.set(path, box);
	const inside = host().adapters.filter(a => a.in === path).map(a => a.adapter).join(", ");
	const name = path.slice(path.lastIndexOf("/") + 1) + (inside && `, with adapter ${inside}`);
	updates.push(() => setText(button, passes(row()) > 0 ? `${name}: ${short(passes(row()))}/s` : name));
}

function buildHost(group, hostIndex) {
	const host = () => last.hosts[hostIndex], row = () => rates.get(`host/${host().node}/0`);
	const card = make("article", "host"), pins = make("div", "pins"), parents = new Map();
	card.dataset.name = host().name;
	card.append(pins);
	host().adapters.forEach((adapter, i) => {
		const to = adapter.attached_to === "switch" ? plan.bySwitch.get(adapter.switch) : null;
		const pin = {...buildPin(pins, hostIndex, i), group: group.index, card: group.cards.length, to,
			along: (i + .5) / host().adapters.length, path: to === null ? null : makePath()};
		updates.push(() => pin.update(pin.path));
		group.pins.push(pin);
		if (to !== null && to !== group.index && !group.foreign.some(f => f.to === to))
			group.foreign.push({to, path: makePath("rail")});
		if (adapter.attached_to === "link")
			joinCable(adapter, pin, host, i);
	});
	const name = choosable(make("button", "name"), () => [`${host().kind} ${host().name}`, [["node", host().node],
		["kind", host().kind], ["state", isOff(host()) ? "off" : host().state], ["window", host().window],
		["memory", host().ram === undefined ? undefined : size(host().ram)],
		["IOMMU", host().iommu === undefined ? undefined : host().iommu ? "on" : "off"], ...movedRows(row()),
		["faults", faultsOf(row())], ["borrows", borrowed(host().name).join(", ")]]]);
	const node = make("small", "muted"), faults = make("div", "uses"), uses = make("div", "uses");
	name.append(make("b", "", host().name), node);
	card.append(name);
	host().chassis.forEach((_, i) => buildChassis(parents, card, hostIndex, i));
	host().devices.forEach((d, i) => buildDevice(parents.get(d.in) ?? card, hostIndex, i));
	card.append(uses, faults);
	updates.push(() => {
		const n = faultsOf(row()), list = borrowed(host().name).join(", ");
		const state = isOff(host()) ? "off" : host().state === "up" ? "" : host().state;
		const words = [isMachine(host()) ? "machine" : "", isMachine(host()) || !state ? `node ${host().node}` : "", state];
		setText(node, words.filter(Boolean).join(", "));
		node.className = !state || isOff(host()) ? "muted" : "bad";
		card.classList.toggle("down", state !== "" && !isOff(host()));
		card.classList.toggle("off", isOff(host()));
		setText(faults, n ? `${n.toLocaleString("en")} faults` : "");
		faults.className = row()?.faults_per_second ? "uses bad" : "uses warn";
		setText(uses, list ? `uses ${list}` : "");
		uses.title = list;
		faults.hidden = !n;
		uses.hidden = !list;
	});
	group.cards.push(card);
	group.grid.append(card);
}

/* Devices of other hosts that programs of @name have borrowed. */
function borrowed(name) {
	return last.hosts.filter(h => h.name !== name).flatMap(h => h.devices.filter(d =>
		rates.get(`device/${h.node}/${d.id}`)?.borrowed_by.some(b => b.host === name)).map(d => d.name));
}

/* The second end of a cable makes it a line. */
function joinCable(adapter, pin, host, index) {
	const other = plan.ends.get(adapter.cable);
	if (!other) {
		plan.ends.set(adapter.cable, pin);
		return;
	}
	const cable = {pins: [other, pin], path: makePath()};
	plan.cables.push(cable);
	updates.push(() => dress(cable.path, isCut(host(), host().adapters[index]), passes(rates.get(`link/${host().node}/${index}`))));
}

function buildBar(group, section) {
	const number = group.number, sw = () => last.switches[number];
	const bar = make("div", "bar"), state = make("span", "bad");
	bar.append(make("b", "", sw().name), make("small", "muted", "switch"), state);
	section.append(bar);
	group.bar = bar;
	group.rail = makePath("rail");
	updates.push(() => {
		setText(state, sw().state === "up" ? "" : sw().state);
		bar.classList.toggle("down", sw().state === "down");
		group.rail.classList.toggle("down", sw().state === "down");
		for (const rail of plan.groups.flatMap(g => g.foreign).filter(f => f.to === group.index))
			rail.path.classList.toggle("down", sw().state === "down");
	});
}

function buildTrunk(index) {
	const trunk = () => last.trunks[index], row = () => rates.get(`trunk/0/${index}`);
	const ends = trunk().switches.map(name => plan.bySwitch.get(name)).sort((a, b) => a - b);
	const path = makePath(), upper = plan.groups[ends[0]].sw.name;
	const button = choosable(make("button", "trunk"), () => [`link ${trunkName(trunk())}`,
		[["state", trunk().link], laneRow(trunk()), ...movedRows(row())]]);
	plan.groups[ends[1]].bar.append(button);
	plan.trunks.push({from: ends[0], to: ends[1], path});
	updates.push(() => {
		const rate = passes(row()), down = trunk().link === "down";
		setText(button, `to ${upper}: x${trunk().link_width}, ${trunk().link === "up" ? speed(rate) : trunk().link}`);
		button.className = down ? "trunk bad" : "trunk";
		dress(path, down, rate);
	});
}

function build() {
	const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
	svg.id = "wires";
	svg.setAttribute("aria-hidden", "true");
	graph.replaceChildren(svg);
	updates = [];
	choose(null);
	plan = {groups: groupsOf(last), bySwitch: new Map(), ends: new Map(), cables: [], trunks: []};
	plan.groups.forEach((group, i) => {
		Object.assign(group, {index: i, cards: [], pins: [], foreign: []});
		if (group.sw)
			plan.bySwitch.set(group.sw.name, i);
	});
	for (const group of plan.groups) {
		const section = make("section", group.sw ? "group" : "group cabled");
		group.grid = make("div", "hosts");
		if (group.sw)
			buildBar(group, section);
		section.append(group.grid);
		graph.append(section);
	}
	for (const group of plan.groups)
		group.hosts.forEach(i => buildHost(group, i));
	last.trunks.forEach((_, i) => buildTrunk(i));
	narrowest = last.hosts.length <= 16 ? 200 : 104;
	$("links-part").open = last.hosts.length <= 16;
}

/* ---- sums and tables ---- */

function showSums(top) {
	const up = (list, test) => `${list.filter(test).length}/${list.length}`;
	const machines = last.hosts.filter(isMachine), hosts = last.hosts.filter(h => !isMachine(h));
	const adapters = last.hosts.filter(h => !isOff(h)).flatMap(h => h.adapters), devices = last.hosts.flatMap(h => h.devices);
	const sum = (rows, value) => rows.map(value).filter(v => v !== undefined).reduce((a, b) => a + b, 0);
	const items = [["hosts up", up(hosts, h => h.state === "up")],
		...machines.length ? [["machines up", up(machines, h => h.state === "up")]] : [], ["links up", up(adapters, a => a.link === "up")],
		["devices in", up(devices, isIn)], ["devices move", speed(sum(top.devices, passes))],
		["commands", perSecond(sum(top.devices, d => d.commands_per_second))], ["faults", count(sum(top.hosts, faultsOf))]];
	$("sums").replaceChildren(...items.map(([name, value]) => {
		const item = make("li", "", `${name} `);
		item.append(make("b", "", value));
		return item;
	}));
}

const WRONG = ["down", "out", "host down"]; /* states */

function table(e, heads, rows) {
	const cell = (tag, value, i) => make(tag, heads[i].startsWith(">") ? "number" : WRONG.includes(value) ? "bad" : "", value);
	const line = (tag, values) => {
		const tr = make("tr");
		tr.append(...values.map((value, i) => cell(tag, value ?? "", i)));
		return tr;
	};
	const head = line("th", heads.map(h => h.replace(">", "")));
	for (const th of head.children)
		th.scope = "col";
	e.replaceChildren(head, ...rows.map(row => line("td", row)));
}

function showTables() {
	const devices = last.hosts.flatMap(h => h.devices.map(d => {
		const r = rates.get(`device/${h.node}/${d.id}`);
		return [d.name, d.type, h.name, d.state, borrowers(r), perSecond(r?.commands_per_second), speed(r?.read_bytes_per_second),
			speed(r?.written_bytes_per_second), r?.queue_pairs === undefined ? "" : `${r.queue_pairs}/${r.queue_pairs_max}`,
			d.quarantined ?? "-", faultsOf(r) ?? "-"];
	}));
	const links = last.hosts.flatMap(h => h.adapters.map((a, i) => {
		const r = rates.get(`link/${h.node}/${i}`);
		return [linkName(h, a), a.switch ?? (a.attached_to === "link" ? `cable ${a.cable}` : "-"), isOff(h) ? "off" : a.link,
			`x${a.link_width}`, a.traffic_counted === false ? "not counted" : speed(r?.read_bytes_per_second),
			a.traffic_counted === false ? "not counted" : speed(r?.written_bytes_per_second), perSecond(r?.reads_per_second),
			perSecond(r?.writes_per_second), perSecond(r?.interrupts_per_second), faultsOf(r) ?? "-"];
	}));
	links.push(...last.trunks.map((l, i) => {
		const r = rates.get(`trunk/0/${i}`);
		return [trunkName(l), "switches", l.link, `x${l.link_width}`, speed(r?.read_bytes_per_second),
			speed(r?.written_bytes_per_second), perSecond(r?.reads_per_second), perSecond(r?.writes_per_second), "", ""];
	}));
	$("devices-part").hidden = !devices.length;
	$("links-part").hidden = !links.length;
	table($("devices"), ["device", "type", "lender", "state", "borrowed by", ">commands", ">read", ">written", ">queue pairs",
		">quarantined", ">faults"], devices);
	table($("links"), ["link", "to", "state", ">lanes", ">read", ">written", ">reads", ">writes", ">interrupts", ">faults"], links);
}

/* ---- the whole ---- */

function say(className, text) {
	$("state").className = className;
	setText($("state"), text);
	$("main").classList.toggle("stale", className === "wrong");
}

function show(data, age) {
	setText($("cluster"), data.cluster);
	document.title = `${data.cluster} – SmartIO`;
	if (data.state === "gone")
		return say("wrong", `the cluster is gone: ${data.why}`);
	if (data.state !== "live")
		return say("", "looking at the cluster…");
	last = data.topology;
	rates = ratesOf(data.top);
	if (shapeOf(last) !== shape) {
		shape = shapeOf(last);
		build();
	}
	for (const update of updates)
		update();
	showSums(data.top);
	showTables();
	const lines = wrongs(last, rates);
	$("wrong").hidden = !lines.length;
	if ($("wrong").childElementCount !== lines.length || [...$("wrong").children].some((li, i) => li.textContent !== lines[i]))
		$("wrong").replaceChildren(...lines.map(line => make("li", "", line)));
	showDetail();
	drawWires(graph, plan, narrowest);
	document.documentElement.dataset.look = data.look;
	if (age > 3)
		return say("wrong", `the cluster has not answered for ${age} s`);
	say("live", "live");
}

async function poll() {
	let wait = 1000;
	try {
		const reply = await fetch(`live.json${location.search}`, {cache: "no-store", signal: AbortSignal.timeout(10000)});
		const doc = await reply.json();
		show(doc.data, Number(reply.headers.get("Age")));
		wait = doc.data.state === "looking" || doc.data.look === 1 ? 250 : 1000;
	} catch (e) {
		say("wrong", e instanceof TypeError || e.name === "TimeoutError" ? "smartio web does not answer" : `the page failed: ${e.message}`);
		if (!(e instanceof TypeError || e.name === "TimeoutError"))
			console.error(e);
	}
	setTimeout(poll, wait);
}

$("close").addEventListener("click", () => {
	const by = chosen?.by;
	choose(null);
	by?.focus();
});
addEventListener("keydown", e => {
	if (e.key === "Escape" && chosen)
		$("close").click();
});
new ResizeObserver(() => plan && drawWires(graph, plan, narrowest)).observe(graph);
poll();
