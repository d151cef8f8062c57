"""The words of the synthetic newswire: `TOPICS`, an indented outline, and `BACKGROUND`, everyday news words.

One line of the outline is one topic, `name: words`, most frequent word first; two more spaces are one level
down. The order of lines and words decides what `make_news` writes: any edit here changes every stream.
"""

__all__ = ["BACKGROUND", "TOPICS"]

TOPICS = """\
sport: team match season coach win champion fans league score player stadium medal trophy
  ball games: pass defence attack squad captain referee halftime substitute opponent possession ball
    football: goal striker penalty midfielder goalkeeper corner offside header derby relegation kickoff
      cup football: knockout replay shootout underdog semifinal wembley minnows draw tie upset final
      football transfers: fee contract loan agent signing deadline clause winger bid medical swap
    basketball: rebound dunk guard assist dribble buzzer hoop quarter backboard layup playoff
    rugby: try scrum lineout tackle conversion fullback maul prop ruck flanker hooker
    volleyball: spike setter serve libero block dig beach rally net rotation blocker
    baseball: pitcher inning umpire batter bullpen shortstop catcher outfield strikeout glove bunt
  racket sports: racket set seed court serve baseline singles doubles umpire volley stroke
    tennis: ace backhand forehand tiebreak wimbledon clay deuce rallying grass lob slam
    badminton: shuttlecock smash feather birdie clear drop footwork shuttle overhead flick gut
  athletics: track stadium athlete record heat lane meet stride sprinter olympic runner
    sprinting: hurdles relay baton blocks lunge tailwind hundred acceleration spikes dash gun
    marathon: kilometre pacemaker endurance cramp road finisher wheelchair hydration blisters mile pace
    throwing: javelin discus hammer shot circle release cage thrower metres foul putter
  winter sports: snow ice slope piste medal alpine frozen goggles resort glove podium
    skiing: slalom downhill gate ski giant edge moguls wax crash lift powder
    ice hockey: puck goalie rink faceoff icing stick winger slapshot bench enforcer overtime
    figure skating: axel lutz pirouette routine skater choreography salchow judges costume rotation blade
  motor sport: engine lap circuit driver tyre pole pit overtaking grid chassis telemetry
    formula racing: downforce qualifying aerodynamics steward undercut cockpit hairpin chicane monza turbo
    rallying: gravel copilot stage dakar suspension dune navigator jump mud bonnet helmet
economy: market price percent billion company growth investor quarter demand profit cost sector shares
  finance: capital fund asset yield credit portfolio exchange broker liquidity risk return
    banking: bank loan deposit mortgage branch lender customer account borrower overdraft teller
      monetary policy: inflation rate governor reserve easing tightening hike committee basis hawkish dovish
    stock market: index equity rally trader dividend listing bull bear volatility buyback flotation
    insurance: premium claim underwriter actuary coverage payout liability reinsurance hazard annuity
    digital currency: bitcoin token wallet blockchain miner ledger coin stablecoin ether hash custody
  industry: factory plant output manufacturing supplier production machinery order assembly capacity export
    car making: vehicle sedan dealer carmaker recall hybrid battery model showroom bumper gearbox
    steel: furnace iron alloy scrap mill slab coke rolling foundry smelter billet
    textiles: cotton yarn fabric garment loom weaving denim wool apparel spinning stitch
  energy: power fuel grid electricity megawatt utility generator supply emission consumption consumer
    oil: crude barrel refinery drilling opec pipeline tanker rig petroleum brent wellhead
    natural gas: methane liquefied storage terminal shale flare compressor cubic siberian hub heating
    solar power: panel rooftop silicon photovoltaic sunlight inverter module cell array subsidy watt
    wind power: turbine blade offshore rotor mast gust onshore gearbox nacelle breeze monopile
    nuclear power: reactor uranium plutonium radiation containment coolant waste fission meltdown enrichment
  farming: farmer crop harvest field acre yield season rural subsidy tractor soil
    grain: wheat corn barley bushel silo rice flour sowing drought miller rye
    livestock: cattle pig poultry beef herd slaughter pork feed sheep abattoir calf
    dairy: milk cheese butter cow creamery yoghurt whey pasture cream milking curd
    wine growing: vineyard grape vintage cellar barrel bottle oak tasting cork merlot pruning
  trade: export import goods customs border container partner deficit surplus shipment tariff
    trade disputes: retaliation dumping sanction duty quota embargo levy barrier arbitration complaint
    shipping: port vessel cargo freight dock harbour strait crew ship berth canal
    retailing: store supermarket shopper discount mall checkout online shelf brand grocery bargain
  labour: worker job wage employer union pay hiring staff workforce payroll overtime
    strikes: walkout picket stoppage ballot negotiation shutdown protest mediator solidarity lockout grievance
    unemployment: jobless benefit layoff redundancy vacancy claimant dismissal furlough retraining dole
science: research scientist study university experiment theory data laboratory discovery professor journal
  physics: particle quantum energy matter force detector measurement physicist equation atom nobel
    particle physics: collider boson neutrino quark proton higgs hadron muon antimatter cern decay
    optics: laser photon lens beam wavelength fibre mirror light spectrum polarisation interference
  space: orbit rocket mission nasa launch spacecraft astronaut satellite moon probe gravity
    planets: mars rover crater jupiter saturn atmosphere ring venus lander dust mercury
    astronomy: telescope galaxy star supernova nebula redshift exoplanet comet observatory pulsar cosmology
  biology: species cell organism evolution gene habitat biologist protein population wildlife bacteria
    genetics: genome dna chromosome mutation sequencing inheritance crispr allele trait clone enzyme
    ecology: ecosystem biodiversity forest predator invasive wetland extinction pollinator food habitat
    fossils: dinosaur skeleton excavation jurassic bone sediment mammoth paleontologist amber skull feather
  medicine: patient doctor hospital treatment disease clinical drug trial symptom therapy diagnosis
    cancer: tumour chemotherapy oncology biopsy leukaemia remission malignant screening melanoma radiology
    infections: virus outbreak epidemic fever infection quarantine pathogen contagious malaria cholera mask
      vaccines: dose immunity booster antibody injection jab needle immunisation vial placebo measles
    heart disease: artery cholesterol cardiac bypass stroke pacemaker valve cardiologist stent pulse
  computing: computer software algorithm code user network developer chip programme system processor
    artificial intelligence: neural training model chatbot language prompt transformer robot dataset tokens
    computer security: hacker malware password breach ransomware phishing encryption firewall patch botnet
    microchips: semiconductor wafer transistor foundry lithography silicon memory circuit fab packaging
  earth science: geologist earth rock crust ocean survey sediment mineral plate mantle expedition
    climate change: warming carbon greenhouse glacier emission melting arctic drought footprint offset
    earthquakes: quake magnitude tremor epicentre fault aftershock richter seismic tsunami rubble seismologist
    volcanoes: lava eruption ash crater magma plume evacuation caldera pumice vent dome
society: people public country city family community life minister citizen social national group
  politics: government party president policy leader opposition cabinet reform debate coalition senator
    elections: vote ballot candidate campaign poll voter turnout constituency runoff landslide recount
    parliament: bill law amendment speaker chamber committee legislation motion quorum whip lawmaker
    diplomacy: treaty ambassador summit embassy envoy ceasefire negotiation bilateral sanction consul accord
      peace talks: truce mediator hostage ceasefire rebel withdrawal roadmap guerrilla prisoner delegation
  justice: court law judge police case lawyer prison evidence legal investigation suspect
    trials: jury verdict prosecutor defendant acquittal witness testimony appeal sentence courtroom hearing
    crime: murder robbery gang theft weapon arrest detective burglary shooting victim kidnapping
    fraud: bribe laundering embezzlement scam forgery swindle whistleblower kickback ponzi offshore audit
  culture: artist audience festival show award art exhibition stage culture director critic
    music: song album concert band singer guitar melody chart orchestra drummer tour
      opera: soprano tenor aria libretto conductor verdi baritone overture puccini chorus encore
      rock music: guitarist riff amplifier vinyl headliner punk bassist gig frontman encore roadie
    film: movie actor cinema hollywood script oscar screen sequel actress premiere blockbuster
    literature: novel author poet publisher bookshop chapter poetry manuscript paperback translation fiction
    painting: canvas gallery portrait museum brush auction landscape pigment curator sketch picasso
  education: school student teacher education exam curriculum degree learning campus classroom college
    schools: pupil homework kindergarten literacy uniform timetable playground grade truancy bullying
    universities: tuition faculty lecture graduate dean scholarship doctorate enrolment thesis alumni
  religion: church faith prayer religious god holy worship temple mosque priest pilgrim
    vatican: pope cardinal conclave bishop encyclical cathedral saint archbishop papal blessing diocese
  travel: passenger tourist trip journey route ticket destination luggage traveller delay holiday
    aviation: airline flight airport pilot runway aircraft boarding cabin takeoff landing jet
    railways: train station rail locomotive signal platform carriage commuter tunnel conductor track
  weather: rain forecast wind temperature storm cloud degrees meteorologist sky humidity warning
    hurricanes: cyclone landfall typhoon surge evacuation gust hurricane category shelter tropical devastation
    floods: river dam levee water flooding sandbag rainfall inundation dyke mudslide drainage
"""

BACKGROUND = """
said the and for that with was after year new from will has but more over they week about last two first
which would also time made were been into than other when day part early late month there three monday
tuesday wednesday thursday friday saturday sunday report according official spokesman statement told
reporters announced news agency expected plan plans world state international local north south east west
central region morning evening night afternoon yesterday today tomorrow january february march april may
june july august september october november december decade century four five six seven eight nine ten dozen
thousand million half third most many some several few all both each every another such much less least
little large small big long short high low good bad better best worse strong weak important major minor main
key recent former current future past next previous second full whole open close closed start started begin
began end ended continue continued remain remained become became make take took taken give gave given get
got come came going went gone see saw seen know known think thought believe believed feel felt hope hoped
want wanted need needed help helped work worked call called ask asked answer say saying speak spoke tell met
meeting talk visit visited arrive arrived leave left returned move moved bring brought keep kept hold held
lead led put turn turned showed find found lose lost rise rose fall fell increase increased decline declined
changed raise raised cut add added reach reached agree agreed decide decided decision offer offered accept
accepted reject rejected support supported oppose opposed warn warned urge urged confirm confirmed deny
denied claimed suggest suggested note noted explain explained describe described because although while
during before since until under between against among despite however meanwhile moreover therefore still
already again often never always sometimes perhaps probably clearly likely nearly almost around across along
behind beyond within without toward upon near far away back here where why how what who whose this these
those its their our your his her him them she you not only even just too very quite rather well then now
once soon ago yet per cent number level amount total average result problem question issue reason way place
side area point line fact idea view role effort chance event centre office building street house home name
word man woman men women child children friend member head chief senior young old top bottom front
"""
