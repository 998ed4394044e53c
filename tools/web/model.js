/* SPDX-License-Identifier: BSD-2-Clause */
/* What the document says, in the words of the page. */
const UNIT = ["", "K", "M", "G", "T", "P", "E"];

/* Powers of 1024, three digits. */
function short(n) {
	let unit = 0;
	for (; n >= 1023.5 && unit < 6; unit++)
		n /= 1024;
	return (n > 0 && n < 10 ? n.toFixed(1).replace(/\.0$/, "") : Math.round(n).toString()) + UNIT[unit];
}

function count(n) {
	return n > 0 && n < 10 ? n.toFixed(1).replace(/\.0$/, "") : Math.round(n).toLocaleString("en");
}

const size = n => `${short(n).replace(/[A-Z]?$/, " $&")}B`;
const speed = n => n === undefined ? "-" : `${size(n)}/s`;
const perSecond = n => n === undefined ? "-" : `${count(n)}/s`;
/* All that passes; undefined: not known. */
const passes = row => row?.read_bytes_per_second === undefined ? undefined :
	row.read_bytes_per_second + row.written_bytes_per_second;
const faultsOf = row => row?.faults === undefined ? undefined : Number(BigInt(row.faults));

/* Rates by what they are of: "device/NODE/ID"; trunks and chassis are numbered in the topology's order. */
function ratesOf(top) {
	const rates = new Map();
	for (const [kind, rows] of [["host", top.hosts], ["link", top.links], ["chassis", top.chassis], ["trunk", top.trunks],
		["device", top.devices]])
		for (const row of rows)
			rates.set(`${kind}/${kind === "trunk" ? 0 : row.node}/${row.id}`, row);
	return rates;
}

/* What makes a drawing another one. */
function shapeOf(t) {
	return JSON.stringify([t.switches.map(s => s.name), t.trunks.map(l => l.switches), t.hosts.map(h =>
		[h.name, h.node, h.kind, h.adapters.map(a => [a.attached_to, a.switch, a.cable, a.in]), h.chassis.map(c => c.name),
			h.devices.map(d => [d.id, d.name, d.type, d.in])])]);
}

/*
 * Hosts by the switch that their first link leads to, in the order in which they are drawn: switches that lead to
 * switches alone, those with hosts, the others; then the hosts that are on no switch (sw: null).
 */
function groupsOf(t) {
	const groups = t.switches.map((sw, i) => ({sw, number: i, hosts: []}));
	const loose = {sw: null, hosts: []};
	t.hosts.forEach((host, i) => {
		const home = host.adapters.find(a => a.attached_to === "switch");
		(home ? groups.find(g => g.sw.name === home.switch) : loose).hosts.push(i);
	});
	const joins = g => t.trunks.some(l => l.switches.includes(g.sw.name));
	const rank = g => g.hosts.length ? 1 : joins(g) ? 0 : 2;
	groups.sort((a, b) => rank(a) - rank(b) || a.number - b.number);
	return loose.hosts.length ? [...groups, loose] : groups;
}

const linkName = (host, adapter) => `${host.name}.${adapter.adapter}`;
const trunkName = trunk => trunk.switches.join("–");
/* Whether it can be used: of a machine's own device that is the machine's matter. */
const isIn = device => ["free", "shared", "exclusive", "attached", "detached"].includes(device.state);
const isMachine = host => host.kind === "machine";
/* A machine that nobody has started is no trouble, nor are its links. */
const isOff = host => isMachine(host) && host.state === "down";
const isCut = (host, adapter) => adapter.link === "down" && !isOff(host);
const borrowers = row => (row?.borrowed_by ?? []).map(b => b.programs > 1 ? `${b.host} ×${b.programs}` : b.host).join(", ");

/* Lines for what is wrong now; what a switch without power takes with it is told in one. */
function wrongs(t, rates) {
	const lines = [];
	if (t.machine_room !== "up")
		lines.push("the machine room, which emulates the hardware, is down");
	const off = new Set(t.switches.filter(sw => sw.state === "down").map(sw => sw.name));
	for (const name of off) {
		const links = t.hosts.flatMap(h => h.adapters).filter(a => a.switch === name).length +
			t.trunks.filter(l => l.switches.includes(name)).length;
		lines.push(`switch ${name} is down, and with it ${links === 1 ? "a link" : `${links} links`}`);
	}
	for (const trunk of t.trunks)
		if (trunk.link === "down" && !trunk.switches.some(name => off.has(name)))
			lines.push(`the link between ${trunk.switches.join(" and ")} is down`);
	for (const h of t.hosts) {
		if (h.state !== "up" && !isMachine(h))
			lines.push(h.state === "down" ? `host ${h.name} is down` : `host ${h.name}: ${h.state}`);
		const faults = rates.get(`host/${h.node}/0`)?.faults_per_second;
		if (faults)
			lines.push(`${h.kind} ${h.name}: ${perSecond(faults)} accesses that fault`);
		for (const a of h.adapters)
			if (a.link === "down" && h.state === "up" && !off.has(a.switch))
				lines.push(`link ${linkName(h, a)} is down`);
		for (const d of h.devices) {
			if (d.state === "out")
				lines.push(`device ${d.name} of ${h.name} is out of its slot`);
			if (d.quarantined)
				lines.push(`device ${d.name} of ${h.name}: memory of ${d.quarantined} that ended is in quarantine`);
			if (d.reset_state === "reset failed")
				lines.push(`device ${d.name} of ${h.name}: its reset failed`);
		}
	}
	const most = 12;
	return lines.length > most ? [...lines.slice(0, most - 1), `and ${lines.length - most + 1} more`] : lines;
}
