import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigValue;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/** What MirrorMaker's classes make of many names, records and configurations, in one call: JSON in, JSON out. */
public class MirrorJudge {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final String MIRROR = "org.apache.kafka.connect.mirror.";
    private static final TopicPartition PLACE = new TopicPartition("t", 0);
    private final ObjectMapper mapper = new ObjectMapper();

    /** The answers of one object's methods, each of which takes texts. */
    public String called(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        Object plugin = plugin(asked);
        ArrayNode answers = NODES.arrayNode();
        for (Iterator each = asked.get("calls").elements(); each.hasNext();) {
            List call = texts((JsonNode) each.next());
            Object[] arguments = call.subList(1, call.size()).toArray();
            answers.add(told(method(plugin.getClass(), (String) call.get(0), arguments.length, String.class).invoke(plugin, arguments)));
        }
        return mapper.writeValueAsString(answers);
    }

    /** Which topics a source connector copies. */
    public String copied(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        Object connector = sourceConnector(asked);
        Method copies = method(connector.getClass(), "shouldReplicateTopic", 1);
        ArrayNode answers = NODES.arrayNode();
        for (Iterator each = texts(asked.get("topics")).iterator(); each.hasNext();) {
            answers.add(((Boolean) copies.invoke(connector, new Object[] {each.next()})).booleanValue());
        }
        return mapper.writeValueAsString(answers);
    }

    /** The settings that a class of configurations declares. */
    public String declared(String name) throws Exception {
        ConfigDef definition = (ConfigDef) constant(name, "CONNECTOR_CONFIG_DEF");
        ArrayNode answers = NODES.arrayNode();
        for (Iterator each = definition.configKeys().values().iterator(); each.hasNext();) {
            ConfigDef.ConfigKey key = (ConfigDef.ConfigKey) each.next();
            ObjectNode one = answers.addObject();
            one.put("name", key.name);
            one.put("type", key.type.name());
            one.put("importance", key.importance.name());
            one.put("required", !key.hasDefault());
            one.put("default", key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null);
        }
        return mapper.writeValueAsString(answers);
    }

    /** The errors of each key of a connector's configuration. */
    public String validated(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        Connector connector = (Connector) made(asked.get("class").textValue());
        ObjectNode answers = NODES.objectNode();
        for (Iterator each = connector.validate(map(asked.get("config"))).configValues().iterator(); each.hasNext();) {
            ConfigValue value = (ConfigValue) each.next();
            if (!value.errorMessages().isEmpty()) {
                ArrayNode errors = answers.putArray(value.name());
                for (Iterator error = value.errorMessages().iterator(); error.hasNext();) {
                    errors.add((String) error.next());
                }
            }
        }
        return mapper.writeValueAsString(answers);
    }

    /** What a configuration's method answers that takes nothing or a text. */
    public String configured(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        Class type = Class.forName(MIRROR + asked.get("class").textValue());
        Object config = constructor(type, 1, Map.class).newInstance(new Object[] {map(asked.get("config"))});
        List call = texts(asked.get("call"));
        Object[] arguments = call.subList(1, call.size()).toArray();
        return mapper.writeValueAsString(told(method(type, (String) call.get(0), arguments.length, String.class).invoke(config, arguments)));
    }

    /** The key and the value of a heartbeat, a checkpoint or an offset sync. */
    public String written(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        JsonNode fields = asked.get("fields");
        Class type = Class.forName(MIRROR + asked.get("class").textValue());
        Object[] arguments;
        if (type.getSimpleName().equals("Heartbeat")) {
            arguments = new Object[] {text(fields, 0), text(fields, 1), number(fields, 2)};
        } else if (type.getSimpleName().equals("Checkpoint")) {
            TopicPartition place = new TopicPartition(text(fields, 1), at(fields, 2).intValue());
            arguments = new Object[] {text(fields, 0), place, number(fields, 3), number(fields, 4), text(fields, 5)};
        } else {
            TopicPartition place = new TopicPartition(text(fields, 0), at(fields, 1).intValue());
            arguments = new Object[] {place, number(fields, 2), number(fields, 3)};
        }
        Object made = constructor(type, arguments.length, null).newInstance(arguments);
        ObjectNode answer = NODES.objectNode();
        answer.put("key", (byte[]) method(type, "recordKey", 0).invoke(made, new Object[0]));
        answer.put("value", (byte[]) method(type, "recordValue", 0).invoke(made, new Object[0]));
        return mapper.writeValueAsString(answer);
    }

    /** What a record says, as a text; or that it cannot be read. */
    public String read(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        Class type = Class.forName(MIRROR + asked.get("class").textValue());
        Object[] arguments =
            {new ConsumerRecord("t", 0, 0L, asked.get("key").binaryValue(), asked.get("value").binaryValue())};
        try {
            Object found = method(type, "deserializeRecord", 1).invoke(null, arguments);
            ObjectNode answer = NODES.objectNode();
            for (Iterator each = texts(asked.get("fields")).iterator(); each.hasNext();) {
                String name = (String) each.next();
                answer.set(name, told(method(type, name, 0).invoke(found, new Object[0])));
            }
            return mapper.writeValueAsString(answer);
        } catch (InvocationTargetException refused) {
            return mapper.writeValueAsString(NODES.objectNode().put("refused", String.valueOf(refused.getCause())));
        }
    }

    /** What MirrorMaker's client tells an application that moves to another cluster. */
    public String remote(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        Map config = map(asked.get("config"));
        String source = asked.get("source").textValue();
        ObjectNode answer = NODES.objectNode();
        answer.put("upstream", String.valueOf(new TreeSet(RemoteClusterUtils.upstreamClusters(config))));
        answer.put("hops", RemoteClusterUtils.replicationHops(config, source));
        ObjectNode offsets = answer.putObject("offsets");
        Map found = RemoteClusterUtils.translateOffsets(
            config, source, asked.get("group").textValue(), Duration.ofSeconds(30));
        for (Iterator each = found.entrySet().iterator(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            offsets.put(String.valueOf(entry.getKey()), ((OffsetAndMetadata) entry.getValue()).offset());
        }
        return mapper.writeValueAsString(answer);
    }

    /** The slots of a store that has read syncs, and what it translates offsets to. */
    public String synced(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        Class type = Class.forName(MIRROR + "OffsetSyncStore");
        Object store = constructor(type, 0, null).newInstance(new Object[0]);
        // A store that must read to the end takes the last sync only.
        field(type, "initializationMustReadToEnd").set(store, Boolean.valueOf(!asked.get("precise").booleanValue()));
        Method handle = method(type, "handleRecord", 1);
        add(handle, store, asked.get("before"));
        field(type, "readToEnd").set(store, Boolean.TRUE);
        add(handle, store, asked.get("after"));
        ObjectNode answer = NODES.objectNode();
        ArrayNode slots = answer.putArray("slots");
        Object[] kept = (Object[]) ((Map) field(type, "offsetSyncs").get(store)).get(PLACE);
        for (int i = 0; kept != null && i < kept.length; i++) {
            slots.add(told(kept[i]));
        }
        ArrayNode found = answer.putArray("found");
        Method translate = method(type, "translateDownstream", 3);
        for (Iterator each = asked.get("offsets").elements(); each.hasNext();) {
            Object[] arguments = {"g", PLACE, Long.valueOf(((JsonNode) each.next()).longValue())};
            OptionalLong offset = (OptionalLong) translate.invoke(store, arguments);
            found.add(offset.isPresent() ? offset.getAsLong() : -1L);
        }
        return mapper.writeValueAsString(answer);
    }

    private void add(Method handle, Object store, JsonNode syncs) throws Exception {
        Class type = Class.forName(MIRROR + "OffsetSync");
        for (Iterator each = syncs.elements(); each.hasNext();) {
            JsonNode sync = (JsonNode) each.next();
            Object made =
                constructor(type, 3, null).newInstance(new Object[] {PLACE, number(sync, 0), number(sync, 1)});
            byte[] key = (byte[]) method(type, "recordKey", 0).invoke(made, new Object[0]);
            byte[] value = (byte[]) method(type, "recordValue", 0).invoke(made, new Object[0]);
            handle.invoke(store, new Object[] {new ConsumerRecord("s", 0, 0L, key, value)});
        }
    }

    /** What a writer of syncs has to send after each run of records; a run of nothing is a commit. */
    public String emitted(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        Class type = Class.forName(MIRROR + "OffsetSyncWriter");
        Object[] arguments = {null, "s", null, Long.valueOf(asked.get("lag").longValue())};
        Object writer = constructor(type, 4, null).newInstance(arguments);
        Method queue = method(type, "maybeQueueOffsetSyncs", 3);
        Map pending = (Map) method(type, "getPendingOffsetSyncs", 0).invoke(writer, new Object[0]);
        ArrayNode answers = NODES.arrayNode();
        for (Iterator each = asked.get("runs").elements(); each.hasNext();) {
            JsonNode run = (JsonNode) each.next();
            long count = at(run, 2).longValue();
            for (long i = 0; i < count; i++) {
                Long upstream = Long.valueOf(at(run, 0).longValue() + i);
                Long downstream = Long.valueOf(at(run, 1).longValue() + i);
                queue.invoke(writer, new Object[] {PLACE, upstream, downstream});
            }
            if (count == 0) {
                method(type, "promoteDelayedOffsetSyncs", 0).invoke(writer, new Object[0]);
            }
            answers.add(told(pending.remove(PLACE)));
        }
        return mapper.writeValueAsString(answers);
    }

    /** The flows of a properties file, with the configurations of their workers and connectors. */
    public String flows(String request) throws Exception {
        Class type = Class.forName(MIRROR + "MirrorMakerConfig");
        Map props = map(mapper.readTree(request));
        // Otherwise all jars are searched for plugins, for seconds.
        props.put("plugin.discovery", "service_load");
        Object config = constructor(type, 1, null).newInstance(new Object[] {props});
        ObjectNode answer = NODES.objectNode();
        Collection pairs = (Collection) method(type, "clusterPairs", 0).invoke(config, new Object[0]);
        for (Iterator each = pairs.iterator(); each.hasNext();) {
            Object pair = each.next();
            ObjectNode flow = answer.putObject(pair.toString());
            flow.set("worker", told(method(type, "workerConfig", 1).invoke(config, new Object[] {pair})));
            ObjectNode connectors = flow.putObject("connectors");
            String[] names = {"MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector"};
            for (int i = 0; i < names.length; i++) {
                Object[] arguments = {pair, Class.forName(MIRROR + names[i])};
                connectors.set(names[i], told(method(type, "connectorBaseConfig", 2).invoke(config, arguments)));
            }
        }
        return mapper.writeValueAsString(answer);
    }

    /** What a remote topic gets of a topic's settings, when it is created and later. */
    public String given(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        Object connector = sourceConnector(asked);
        Class type = connector.getClass();
        List entries = new ArrayList();
        for (Iterator each = asked.get("settings").elements(); each.hasNext();) {
            JsonNode setting = (JsonNode) each.next();
            ConfigEntry.ConfigSource source = ConfigEntry.ConfigSource.valueOf(text(setting, 2));
            entries.add(new ConfigEntry(
                text(setting, 0), text(setting, 1), source, at(setting, 4).booleanValue(), at(setting, 3).booleanValue(),
                new ArrayList(), ConfigEntry.ConfigType.STRING, null));
        }
        ObjectNode answer = NODES.objectNode();
        Method target = method(type, "targetConfig", 2);
        Object[] atCreation = {new Config(entries), Boolean.FALSE};
        answer.set("created", told(method(type, "configToMap", 1).invoke(null, new Object[] {target.invoke(connector, atCreation)})));
        ArrayNode changed = answer.putArray("changed");
        Object[] later = {new Config(entries), Boolean.TRUE};
        Method isCopied = method(type, "shouldReplicateSourceDefault", 1);
        for (Iterator each = ((Config) target.invoke(connector, later)).entries().iterator(); each.hasNext();) {
            ConfigEntry entry = (ConfigEntry) each.next();
            boolean isDeleted =
                entry.isDefault() && !((Boolean) isCopied.invoke(connector, new Object[] {entry.name()})).booleanValue();
            changed.addArray().add(entry.name()).add(isDeleted ? null : entry.value());
        }
        return mapper.writeValueAsString(answer);
    }

    /** What becomes of an ACL on the target; null if it is dropped. */
    public String allowed(String request) throws Exception {
        JsonNode asked = mapper.readTree(request);
        Object connector = sourceConnector(asked);
        Class type = connector.getClass();
        ArrayNode answers = NODES.arrayNode();
        for (Iterator each = asked.get("acls").elements(); each.hasNext();) {
            JsonNode acl = (JsonNode) each.next();
            ResourcePattern pattern = new ResourcePattern(
                ResourceType.valueOf(text(acl, 0)), text(acl, 1), PatternType.valueOf(text(acl, 2)));
            AccessControlEntry entry = new AccessControlEntry(
                text(acl, 3), text(acl, 4), AclOperation.valueOf(text(acl, 5)), AclPermissionType.valueOf(text(acl, 6)));
            Object[] binding = {new AclBinding(pattern, entry)};
            if (!((Boolean) method(type, "shouldReplicateAcl", 1).invoke(connector, binding)).booleanValue()) {
                answers.addNull();
                continue;
            }
            AclBinding made = (AclBinding) method(type, "targetAclBinding", 1).invoke(connector, binding);
            answers.addArray()
                .add(made.pattern().resourceType().name())
                .add(made.pattern().name())
                .add(made.pattern().patternType().name())
                .add(made.entry().principal())
                .add(made.entry().host())
                .add(made.entry().operation().name())
                .add(made.entry().permissionType().name());
        }
        return mapper.writeValueAsString(answers);
    }

    private Object sourceConnector(JsonNode asked) throws Exception {
        Map config = map(asked.get("config"));
        Object pair = constructor(Class.forName(MIRROR + "SourceAndTarget"), 2, null)
            .newInstance(new Object[] {config.get("source.cluster.alias"), config.get("target.cluster.alias")});
        String policy = (String) config.get("replication.policy.class");
        Object[] arguments = {
            pair,
            plugin(policy == null ? MIRROR + "DefaultReplicationPolicy" : policy, config),
            plugin(MIRROR + "DefaultTopicFilter", config),
            plugin(MIRROR + "DefaultConfigPropertyFilter", config),
            Boolean.valueOf(!"false".equals(config.get("heartbeats.replication.enabled")))};
        return constructor(Class.forName(MIRROR + "MirrorSourceConnector"), 5, null).newInstance(arguments);
    }

    private Object plugin(JsonNode asked) throws Exception {
        return plugin(MIRROR + asked.get("class").textValue(), map(asked.get("config")));
    }

    private static Object plugin(String name, Map config) throws Exception {
        Object made = Class.forName(name).newInstance();
        ((Configurable) made).configure(config);
        return made;
    }

    private static Object made(String name) throws Exception {
        return Class.forName(MIRROR + name).newInstance();
    }

    private static Object constant(String name, String field) throws Exception {
        return field(Class.forName(MIRROR + name), field).get(null);
    }

    private static Field field(Class type, String name) throws Exception {
        Field found = type.getDeclaredField(name);
        found.setAccessible(true);
        return found;
    }

    private static Method method(Class type, String name, int arguments) throws Exception {
        return method(type, name, arguments, Object.class);
    }

    /** The method of that name, whose first argument may be of the class. */
    private static Method method(Class type, String name, int arguments, Class first) throws Exception {
        for (Class each = type; each != null; each = each.getSuperclass()) {
            Method found = among(each.getDeclaredMethods(), name, arguments, first);
            if (found != null) {
                return found;
            }
        }
        Method inherited = among(type.getMethods(), name, arguments, first);
        if (inherited == null) {
            throw new NoSuchMethodException(type + " has no " + name);
        }
        return inherited;
    }

    private static Method among(Method[] methods, String name, int arguments, Class first) {
        for (int i = 0; i < methods.length; i++) {
            Class[] parameters = methods[i].getParameterTypes();
            boolean fits = parameters.length == 0 || first == Object.class || parameters[0] == first;
            if (methods[i].getName().equals(name) && parameters.length == arguments && fits) {
                methods[i].setAccessible(true);
                return methods[i];
            }
        }
        return null;
    }

    private static Constructor constructor(Class type, int arguments, Class first) throws Exception {
        Constructor[] all = type.getDeclaredConstructors();
        for (int i = 0; i < all.length; i++) {
            Class[] parameters = all[i].getParameterTypes();
            if (parameters.length == arguments && (first == null || parameters[0] == first)) {
                all[i].setAccessible(true);
                return all[i];
            }
        }
        throw new NoSuchMethodException(type + " has no such constructor");
    }

    private static JsonNode told(Object value) throws Exception {
        if (value == null) {
            return NODES.nullNode();
        }
        if (value instanceof Boolean) {
            return NODES.booleanNode(((Boolean) value).booleanValue());
        }
        if (value instanceof Long) {
            return NODES.numberNode(((Long) value).longValue());
        }
        if (value instanceof Map) {
            ObjectNode made = NODES.objectNode();
            for (Iterator each = ((Map) value).entrySet().iterator(); each.hasNext();) {
                Map.Entry entry = (Map.Entry) each.next();
                made.put(String.valueOf(entry.getKey()), String.valueOf(entry.getValue()));
            }
            return made;
        }
        if (value instanceof TopicPartition) {
            TopicPartition place = (TopicPartition) value;
            return NODES.arrayNode().add(place.topic()).add(place.partition());
        }
        if (value.getClass().getSimpleName().equals("OffsetSync")) {
            Long upstream = (Long) method(value.getClass(), "upstreamOffset", 0).invoke(value, new Object[0]);
            Long downstream = (Long) method(value.getClass(), "downstreamOffset", 0).invoke(value, new Object[0]);
            return NODES.arrayNode().add(upstream.longValue()).add(downstream.longValue());
        }
        return NODES.textNode(String.valueOf(value));
    }

    private static Map map(JsonNode told) {
        Map made = new HashMap();
        for (Iterator each = told.fields(); each.hasNext();) {
            Map.Entry entry = (Map.Entry) each.next();
            made.put(entry.getKey(), ((JsonNode) entry.getValue()).textValue());
        }
        return made;
    }

    private static List texts(JsonNode told) {
        List made = new ArrayList();
        for (Iterator each = told.elements(); each.hasNext();) {
            made.add(((JsonNode) each.next()).textValue());
        }
        return made;
    }

    private static String text(JsonNode told, int index) {
        return at(told, index).textValue();
    }

    private static Long number(JsonNode told, int index) {
        return Long.valueOf(at(told, index).longValue());
    }

    private static JsonNode at(JsonNode told, int index) {
        return (JsonNode) told.get(index);
    }
}
